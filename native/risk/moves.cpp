#include "moves.hpp"

#include <algorithm>

namespace fdrsvm::risk {

namespace {

// Features; measured: comparing all pairs is twice as fast at 256, equally fast at about 500.
constexpr size_t kSortAbove = 384;

// linf: for each feature the sum of |w| over all features with more room. That is the multiplier
// below which a step goes on beyond this feature's room: the bend.
void fill_free(const Eight& eight, const Adversary& adversary, int branch) {
    const size_t size = adversary.size;
    size_t i = 0;
    // Two features at a time: the additions of one do not wait for those of the other, and each
    // loaded room serves both.
    for (; i + 2 <= size; i += 2) {
        const Lanes first = Lanes::load(eight.room(branch, i));
        const Lanes second = Lanes::load(eight.room(branch, i + 1));
        Lanes free_first = Lanes::all(0.0), free_second = Lanes::all(0.0);
        for (size_t j = 0; j < size; ++j) {
            const Lanes room = Lanes::load(eight.room(branch, j));
            const Lanes weight = Lanes::all(adversary.weight[j]);
            free_first += only(is_above(room, first), weight);
            free_second += only(is_above(room, second), weight);
        }
        free_first.store(eight.bend(branch, i));
        free_second.store(eight.bend(branch, i + 1));
    }
    for (; i < size; ++i) {
        const Lanes own = Lanes::load(eight.room(branch, i));
        Lanes free = Lanes::all(0.0);
        for (size_t j = 0; j < size; ++j)
            free += only(is_above(Lanes::load(eight.room(branch, j)), own),
                         Lanes::all(adversary.weight[j]));
        free.store(eight.bend(branch, i));
    }
}

// The same for many features, sample by sample, from the largest room down. Ties by index: the
// order of sums must not depend on the library's sort, [same-bits].
void fill_free_by_sorting(const Eight& eight, const Adversary& adversary, int branch) {
    const size_t size = adversary.size;
    Buffer<Row> order(size);
    for (size_t k = 0; k < kLanes; ++k) {
        const auto room = [&](Row i) { return eight.room(branch, i)[k]; };
        for (size_t i = 0; i < size; ++i) order[i] = static_cast<Row>(i);
        std::sort(order.data(), order.data() + size,
                  [&](Row a, Row b) { return room(a) > room(b) || (room(a) == room(b) && a < b); });
        // Features with equal room do not all see the same sum here, unlike above. They stop at the
        // same step, and `step_linf` takes the smallest room, so only the smallest of their sums
        // matters: both ways give the same step.
        double free = 0.0;
        for (size_t j = 0; j < size; ++j) {
            eight.bend(branch, order[j])[k] = free;
            free += adversary.weight[order[j]];
        }
    }
}

// Only linf has bends that differ between samples; for l1 they are the |w| themselves, and l2
// solves for its step at every multiplier.
void fill_bends(const Eight& eight, const Adversary& adversary, int branch) {
    if (adversary.norm != Norm::linf) return;
    if (adversary.size > kSortAbove)
        fill_free_by_sorting(eight, adversary, branch);
    else
        fill_free(eight, adversary, branch);
}

// l1: moving feature p by d costs lam d and gains |w_p| d, so it pays while |w_p| > lam, for every
// sample alike. The step is the smallest |w| that still moves.
double step_l1(const Adversary& adversary, const Multiplier& lam) {
    double least = kInfinity;
    for (size_t i = 0; i < adversary.size; ++i) {
        const double weight = adversary.weight[i];
        if (weight > lam.value || (lam.dearest && weight == lam.value))
            least = smaller(least, weight);
    }
    return least;
}

// linf: going on by d costs lam d and gains d times the |w| of the features not yet stopped, so the
// step ends at the smallest room whose bend is at most lam. The bends fall as rooms grow, so a
// minimum over all features finds it without sorting.
FDRSVM_INLINE Lanes step_linf(const Eight& eight, const Adversary& adversary, int branch,
                              double lam) {
    const Lanes bound = Lanes::all(lam), never = Lanes::all(kInfinity);
    Lanes step = never;
    for (size_t i = 0; i < adversary.size; ++i) {
        const Mask ends = is_at_most(Lanes::load(eight.bend(branch, i)), bound);
        step = smaller(step, choose(ends, Lanes::load(eight.room(branch, i)), never));
    }
    return step;
}

// l2: go along |w| until the length gone, over the step, has fallen to lam. In u = 1 / step^2 that
// is sum_i min(room_i^2 u, w_i^2) = lam^2, concave and piecewise linear: Newton's steps from below
// never pass the root, and end once no further feature is free.
Lanes step_l2(const Eight& eight, const Adversary& adversary, int branch, double lam) {
    // In units of the dual norm: the squares of large or tiny weights would overflow or vanish.
    const double share = lam / adversary.dual_norm;
    const Lanes none = Lanes::all(0.0), target = Lanes::all(share * share);
    Lanes all = none;
    for (size_t i = 0; i < adversary.size; ++i) {
        const Lanes room = Lanes::load(eight.room(branch, i));
        all += room * room;
    }
    // As if all features were stopped: never beyond the root.
    Lanes u = target / all;
    while (true) {
        Lanes stopped = none, free = none;
        for (size_t i = 0; i < adversary.size; ++i) {
            const Lanes room = Lanes::load(eight.room(branch, i)), square = room * room;
            const Lanes weight = Lanes::all(adversary.square[i]);
            const Mask stops = is_at_most(square * u, weight);
            stopped += only(stops, square);
            free += weight - only(stops, weight);
        }
        // The root of the line that holds while this set is stopped. Nothing stopped gives inf, a
        // step of 0.
        const Lanes next = (target - free) / stopped;
        // Lanes that are done keep their u: each sample's bits are those it has alone.
        const Mask goes_on = is_above(next, u);
        if (!any(goes_on)) break;
        u = choose(goes_on, next, u);
    }
    const Lanes step = Lanes::all(1.0) / (square_root(u) * Lanes::all(adversary.dual_norm));
    // Without any room the quotient was 0/0.
    return choose(is_above(all, none), step, none);
}

// l2, linf: at the dual norm a step up to the first stop gains exactly what it costs, so it is as
// good as none. It is the dearest such step: beyond it the gain is smaller than the cost.
Lanes first_step(const Eight& eight, const Adversary& adversary, int branch) {
    Lanes step = Lanes::all(kInfinity);
    for (size_t i = 0; i < adversary.size; ++i) {
        const Lanes room = Lanes::load(eight.room(branch, i));
        const double unit = adversary.norm == Norm::linf ? 1.0 : adversary.weight[i];
        step = smaller(step, room / Lanes::all(unit));
    }
    return step;
}

// At the dual norm moving up to the first stop and not moving are equally good: which one is meant
// is decided here, not by rounding.
FDRSVM_INLINE Lanes best_step(const Eight& eight, const Adversary& adversary, int branch,
                              const Multiplier& lam) {
    if (adversary.norm == Norm::l1) return Lanes::all(step_l1(adversary, lam));
    if (lam.value == adversary.dual_norm)
        return lam.dearest ? first_step(eight, adversary, branch) : Lanes::all(0.0);
    return adversary.norm == Norm::linf ? step_linf(eight, adversary, branch, lam.value)
                                        : step_l2(eight, adversary, branch, lam.value);
}

}  // namespace

Adversary::Adversary(const Samples& samples, const Model& model)
    : feature(model.w.size()),
      sign(model.w.size()),
      weight(model.w.size()),
      square(model.w.size()),
      raised(model.w.size()),
      lowered(model.w.size()),
      norm(samples.ball.transport.norm),
      dual_norm(fdrsvm::dual_norm(model.w, samples.ball.transport.norm)),
      kappa(samples.ball.kappa),
      floor(samples.floor),
      flips(samples.ball.kappa < kInfinity) {
    for (size_t p = 0; p < model.w.size(); ++p) {
        const double w = model.w[p], low = samples.box.low[p], high = samples.box.high[p];
        if (w == 0.0) continue;  // it never moves, since it gains nothing
        feature[size] = static_cast<Row>(p);
        weight[size] = std::fabs(w);
        square[size] = (w / dual_norm) * (w / dual_norm);
        sign[size] = w > 0.0 ? 1.0 : -1.0;
        // Raising w.x moves the feature up if w > 0 and down otherwise.
        raised[size] = w > 0.0 ? high : low;
        lowered[size++] = w > 0.0 ? low : high;
    }
}

namespace {

// Listed features, where the rooms of a kept label will be.
void gather_features(const Samples& samples, const Adversary& adversary, std::span<const Row> rows,
                     const Eight& eight) {
    for (size_t k = 0; k < kLanes; ++k) {
        // Missing samples are copies of the last one; they get no mass.
        const double* row = samples.X[rows[std::min(k, rows.size() - 1)]].data();
        for (size_t i = 0; i < adversary.size; ++i)
            eight.room(kKeep, i)[k] = row[adversary.feature[i]];
    }
}

// In place: features lie where the rooms of a kept label go, each is read before it is replaced.
void turn_into_rooms(const Adversary& adversary, const Eight& eight) {
    // Keeping, the margin is to fall: w.x goes down if the label is 1, up if it is -1.
    const Lanes none = Lanes::all(0.0);
    const Mask positive = is_above(Lanes::load(eight.y()), none);
    for (size_t i = 0; i < adversary.size; ++i) {
        const Lanes x = Lanes::load(eight.room(kKeep, i)), sign = Lanes::all(adversary.sign[i]);
        // Every sample lies inside the box, so that there is nothing to cut off but a minus zero.
        const Lanes up = larger(none, sign * (Lanes::all(adversary.raised[i]) - x));
        const Lanes down = larger(none, sign * (x - Lanes::all(adversary.lowered[i])));
        choose(positive, down, up).store(eight.room(kKeep, i));
        choose(positive, up, down).store(eight.room(kFlip, i));
    }
}

}  // namespace

void fill_rooms(const Samples& samples, const Adversary& adversary, std::span<const Row> rows,
                const Eight& eight) {
    gather_features(samples, adversary, rows, eight);
    turn_into_rooms(adversary, eight);
}

void gather_eight(const Samples& samples, const Adversary& adversary, const Lanes& margins,
                  std::span<const Row> rows, const Eight& eight) {
    margins.store(eight.margin());
    for (size_t k = 0; k < kLanes; ++k) {
        const Row n = rows[std::min(k, rows.size() - 1)];
        eight.y()[k] = samples.masses.y[n];
        eight.mass()[k] = k < rows.size() ? samples.masses.mass[n] : 0.0;
    }
    gather_features(samples, adversary, rows, eight);
}

void complete_eight(const Adversary& adversary, bool with_bends, const Eight& eight) {
    turn_into_rooms(adversary, eight);
    if (!with_bends) return;
    // Without a price on labels the flipped branch is never looked at.
    fill_bends(eight, adversary, kKeep);
    if (adversary.flips) fill_bends(eight, adversary, kFlip);
}

// Of several maximisers the cheapest is taken, or the dearest if asked. The test for a flip is
// written as the gains of `worst_hinge_labels` are, so that both decide alike when nothing moves.
Look look_at(const Eight& eight, const Adversary& adversary, const Multiplier& lam) {
    const auto ignore = [](size_t, const Lanes&) {};
    const auto rooms = [&](int branch) {
        return [&eight, branch](size_t i) { return Lanes::load(eight.room(branch, i)); };
    };
    const Lanes one = Lanes::all(1.0), none = Lanes::all(0.0), price = Lanes::all(lam.value);
    const Lanes floor = Lanes::all(adversary.floor), margin = Lanes::load(eight.margin());
    const Mask nobody = is_above(none, none), everybody = is_equal(none, none);
    const Mask& dearest = lam.dearest ? everybody : nobody;

    // Label kept: K_n of [box-dual], or the floor if even the worst move leaves no loss.
    Look look;
    look.step = best_step(eight, adversary, kKeep, lam);
    const MoveSums keep = apply_moves(adversary, look.step, rooms(kKeep), ignore);
    const Lanes kept = one - margin + (keep.gain - price * keep.length);
    const Mask keeps = either(is_above(kept, floor), both(is_equal(kept, floor), dearest));
    look.value = choose(keeps, kept, floor);
    look.cost = only(keeps, keep.length);
    look.turn = only(keeps, one);
    if (!adversary.flips) return look;

    // Label flipped: R_n - kappa lam, where it beats that.
    const Lanes step = best_step(eight, adversary, kFlip, lam);
    const MoveSums flip = apply_moves(adversary, step, rooms(kFlip), ignore);
    const Lanes flipped = one + margin + (flip.gain - price * flip.length);
    const Lanes flip_cost = flip.length + Lanes::all(adversary.kappa);
    const Lanes extra = flipped - look.value, toll = Lanes::all(adversary.kappa * lam.value);
    // On a tie between keeping and flipping the cheaper wins, or the dearer if that is asked for:
    // the two ends of a kink must be the cheapest and the dearest maximiser, [mixture].
    const Mask in_order =
        lam.dearest ? is_above(flip_cost, look.cost) : is_at_most(flip_cost, look.cost);
    const Mask flips = either(is_above(extra, toll), both(is_equal(extra, toll), in_order));
    look.value = choose(flips, flipped - toll, look.value);
    look.cost = choose(flips, flip_cost, look.cost);
    look.step = choose(flips, step, look.step);
    look.turn = choose(flips, Lanes::all(-1.0), look.turn);
    return look;
}

}  // namespace fdrsvm::risk
