// How far eight samples move inside a box at a given multiplier, [moves].
//
// A sample's room is how far each listed feature may go. A move is described by one number, its
// step: linf moves every feature by the step, l2 by the step times |w|, each stopped at its room;
// l1 moves the features with |w| >= step all the way. For linf, where the best step changes with
// the multiplier is worked out once per sample (`bend`), in O(P^2) by comparing all pairs, which
// for eight samples side by side beats sorting up to some hundred features. A look at one
// multiplier is then O(P); for l2 it is a few times O(P).
#pragma once

#include <cstdint>

#include "lane_maths.hpp"
#include "risk.hpp"

namespace fdrsvm::risk {

using Row = std::uint32_t;

enum Branch : int { kKeep = 0, kFlip = 1 };

// What may be moved, how far, and at what price; only features with w != 0 are listed.
class Adversary {
  public:
    Adversary(const Samples& samples, const Model& model);

    size_t size = 0;
    Buffer<Row> feature;
    Buffer<> sign, weight;  // of w
    Buffer<> square;        // of w over its dual norm
    // The bounds that features run up against when w.x is raised, and when it is lowered.
    Buffer<> raised, lowered;
    Norm norm;
    double dual_norm, kappa, floor;
    bool flips;  // whether labels have a price at all
};

// Where the worst moves are looked for. At the dual norm (for l1 as well) not to move is as good as
// to move: `dearest` takes the longest of the moves that are as good. Below, it is not asked for.
struct Multiplier {
    double value = -1.0;
    bool dearest = false;
};

// What eight samples' worst case is at a multiplier: the loss net of multiplier times cost, and the
// move behind it. `turn` is 1 for a kept label, -1 for a flipped one, 0 for a sample that is left
// alone with its loss at the floor.
struct Look {
    Lanes value, cost, turn, step;
};

// What a move does: the loss gained, and its length.
struct MoveSums {
    Lanes gain, length;
};

// Eight samples side by side, in memory that somebody else owns: margin, mass, label, and for each
// branch rooms and, for linf, bends.
class Eight {
  public:
    Eight(double* memory, const Adversary& adversary)
        : memory_(memory), size_(adversary.size), kinds_(kinds_of(adversary.norm)) {}

    static size_t memory_size(const Adversary& adversary) {
        return kLanes * (3 + 2 * kinds_of(adversary.norm) * adversary.size);
    }
    // Of what is gathered, from the beginning on; the rest can be made of it.
    static size_t gathered_size(const Adversary& adversary) {
        return kLanes * (3 + adversary.size);
    }

    double* margin() const { return memory_; }
    double* mass() const { return memory_ + kLanes; }
    double* y() const { return memory_ + 2 * kLanes; }
    double* room(int branch, size_t i) const { return at(branch, 0, i); }
    double* bend(int branch, size_t i) const { return at(branch, 1, i); }

  private:
    double* memory_;
    size_t size_, kinds_;

    static size_t kinds_of(Norm norm) { return norm == Norm::linf ? 2 : 1; }
    double* at(int branch, size_t kind, size_t i) const {
        return memory_ + kLanes * (3 + (branch * kinds_ + kind) * size_ + i);
    }
};

// Makes `eight` of the rows listed, in two steps; fewer than eight are filled up with copies of no
// mass. Bends are not needed at the dual norm.
void gather_eight(const Samples& samples, const Adversary& adversary, const Lanes& margins,
                  std::span<const Row> rows, const Eight& eight);
void complete_eight(const Adversary& adversary, bool with_bends, const Eight& eight);

// Rooms alone, for moves whose steps are known.
void fill_rooms(const Samples& samples, const Adversary& adversary, std::span<const Row> rows,
                const Eight& eight);

Look look_at(const Eight& eight, const Adversary& adversary, const Multiplier& lam);

// Each listed feature's move of the samples in one branch: calls `use(i, move)` for every feature.
// Part of its caller, so that the lanes stay in registers.
template <class Use>
FDRSVM_INLINE MoveSums apply_moves(const Adversary& adversary, const Lanes& step,
                                   const auto& room_of, Use use) {
    Lanes gain = Lanes::all(0.0), length = Lanes::all(0.0);
    for (size_t i = 0; i < adversary.size; ++i) {
        const Lanes room = room_of(i), weight = Lanes::all(adversary.weight[i]);
        Lanes move;
        if (adversary.norm == Norm::l1) {
            move = only(is_at_most(step, weight), room);
            length += move;
        } else if (adversary.norm == Norm::linf) {
            move = smaller(room, step);
            length = larger(length, move);
        } else {
            move = smaller(room, weight * step);
            length += move * move;
        }
        gain += weight * move;
        use(i, move);
    }
    if (adversary.norm == Norm::l2) length = square_root(length);
    return {gain, length};
}

}  // namespace fdrsvm::risk
