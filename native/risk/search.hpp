// The multiplier at which an adversary has spent its transport budget inside a box, [box-dual].
//
// Primal   spend at most epsilon on moves and flips, so that the mean loss is largest
// Dual     min over lam of  epsilon lam + mean_n max over moves of (loss - lam cost), which is
//          convex with slope epsilon - mean cost
// Link     at the minimiser the moves at both sides of a kink are mixed, so that the mean cost is
//          epsilon, [mixture]
// Method   keep a bracket of lam; drop samples whose worst case is linear on it (they are summed
//          once and for all); look next where the tangents meet, or where a cubic is least
// Stop     the tangents at the two ends prove the minimum to rounding
// Cost     O(N P^2) once for l2 and linf, then O(P) per sample and look; of many samples, a few
//          strided ones show first where the multiplier is likely to be
#pragma once

#include "moves.hpp"

namespace fdrsvm::risk {

// Where a search writes its results, by sample: residuals, minus mass times label, and the moves if
// they are asked for.
struct Destination {
    Vector residual;
    WorstMoves* moves = nullptr;
};

// The worst case at the dual norm, where nothing is worth moving: mean cost of all flips that pay
// there, and mean loss net of the multiplier times the cost.
struct Unmoved {
    double cost = 0.0, value = 0.0;
};

// What moves of some samples add up to, by mass; `moves` is by listed feature.
struct Settled {
    LaneTotal loss, cost;
    Buffer<> moves;  // eight lanes for each listed feature

    explicit Settled(size_t n_listed) : moves(kLanes * n_listed, 0.0) {}
    void clear();
};

// Margin y (w.x + b) of row n, and those of rows from `start` on, as many as there are or fit.
double margin_of(const Samples& samples, const Model& model, size_t n);
void fill_margins(const Samples& samples, const Model& model, size_t start, Vector margins);

// Rows start, start + stride ... of the data.
struct Stride {
    size_t start = 0, step = 1;
};

class Search {
  public:
    // `margins` may be null: then they are worked out where needed.
    Search(const Samples& samples, const Adversary& adversary, const Model& model,
           const double* margins)
        : samples_(samples), adversary_(adversary), model_(model), margins_(margins) {}

    // Closes the bracket over the rows of a stride, whose top end is known. `epsilon` is that of
    // all the data, times the mass of the rows.
    void close(const Stride& rows, const Unmoved& top, double epsilon);

    // The same for all rows, with a guess of where the multiplier is; bad ones cost time only.
    void close_around(double low, double high, double epsilon, const Destination& to);

    double multiplier() const;

    // Mixes the two ends' moves so that they cost `epsilon`; fills the destination, and each listed
    // feature's move by mass.
    BoxResult settle(const Destination& to, Vector mean_moves);

  private:
    struct End {
        Multiplier lam;
        double value = 0.0, slope = 0.0;  // of the objective
    };
    struct Opening;
    enum Side { kLower = 0, kUpper = 1, kLatest = 2 };
    enum Stored { kNothing, kGathered, kWhole };

    const Samples& samples_;
    const Adversary& adversary_;
    const Model& model_;
    const double* margins_;
    double epsilon_ = 0.0;

    End lower_, upper_;
    double line_value_ = 0.0, line_cost_ = 0.0;  // of the samples dropped, at multiplier zero
    // Samples whose worst case still bends inside the bracket, and their costs at both ends and at
    // the latest look; then those dropped.
    Buffer<Row> rows_, dropped_;
    size_t n_rows_ = 0, n_dropped_ = 0;
    Buffer<> costs_[3], values_;
    // Samples by eight: all, as far as they fit, and one at a time. Gathered from here and there
    // they are worth keeping even if rooms and bends must be made at every look.
    Buffer<> store_, scratch_;
    Stored stored_ = kNothing;
    // Samples that are done with, while the bracket is opened or closed: those alike at both ends,
    // and the others at either end.
    Settled common_{0}, low_{0}, high_{0};

    void reserve(size_t size);
    void gather(std::span<const Row> rows, const Eight& eight) const;
    void fill(std::span<const Row> rows, const Eight& eight) const;
    Eight eight_at(size_t first);
    Eight stored_at(size_t first);
    size_t stored_size(Stored what) const;
    void store(Stored what);
    void store_if_small();
    void search(const Multiplier& first);
    bool probe(const Multiplier& lam);
    double next_multiplier(int step) const;
    void drop_linear(double lam);
    void copy_stored(size_t from, size_t to);
    void open(const Multiplier& left, const Multiplier& right, const Destination& to);
    bool is_beyond(const End& end) const;
    bool is_lower_better() const;
    void write(const Look& look, const Eight& eight, std::span<const Row> rows, int end,
               const Destination& to) const;
    void settle_dropped(const Destination& to);
    void settle_eight(const Eight& eight, const Look& look, const Lanes& mass, Settled& settled);
    std::span<const Row> rows_from(size_t first) const;
};

}  // namespace fdrsvm::risk
