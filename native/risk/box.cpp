#include <algorithm>

#include "../core/products.hpp"
#include "risk.hpp"
#include "search.hpp"

namespace fdrsvm::risk {

namespace {

// From this many samples on, eight strided samples of 1024 rows are solved first: they take ten and
// more looks at all rows down to two.
constexpr size_t kGuessAbove = 20'000;
constexpr size_t kGuessRows = 1024;
constexpr size_t kGuesses = 8;

// Adds up the worst case at the dual norm: there no move pays, so only flips count and no rooms are
// needed. The same comparisons as in `look_at`, so that both decide alike on ties.
struct UnmovedSums {
    const Adversary& adversary;
    LaneTotal flipped, value;

    void add(const Lanes& margin, const Lanes& mass) {
        const Lanes one = Lanes::all(1.0), floor = Lanes::all(adversary.floor);
        const Lanes kept = larger(one - margin, floor);
        Lanes loss = kept;
        if (adversary.flips) {
            const Lanes toll = Lanes::all(adversary.kappa * adversary.dual_norm);
            // Strictly more than the toll: on a tie keeping is cheaper, and cheapest counts here.
            const Mask flips = is_above(one + margin - kept, toll);
            flipped.add(only(flips, mass));
            loss = larger(choose(flips, one + margin - toll, kept), floor);
        }
        value.add(mass * loss);
    }
    Unmoved sums() const {
        const double mass = flipped.sum();
        // kappa may be infinite, with no mass flipped.
        return {mass > 0.0 ? adversary.kappa * mass : 0.0, value.sum()};
    }
};

// In pieces that stay in the cache; fills the margins.
Unmoved unmoved(const Samples& samples, const Adversary& adversary, const Model& model,
                double* margins) {
    constexpr size_t kPiece = 512;
    UnmovedSums sums{adversary, {}, {}};
    for (size_t start = 0; start < samples.X.rows; start += kPiece) {
        const size_t size = std::min(kPiece, samples.X.rows - start);
        double* own = margins + start;
        fill_margins(samples, model, start, {own, size});
        const double* mass = samples.masses.mass.data() + start;
        for (size_t n = 0; n < size; n += kLanes) {
            const size_t count = std::min(kLanes, size - n);
            sums.add(load_up_to(own + n, count), load_up_to(mass + n, count));
        }
    }
    return sums.sums();
}

// Lowest and highest multiplier of a few small samples. They nearly always enclose that of the
// whole, which spares most looks at all the data.
struct Range {
    double low = kInfinity, high = 0.0;
};

Range guess_multiplier(const Samples& samples, const Adversary& adversary, const Model& model) {
    const size_t size = samples.X.rows, stride = size / kGuessRows;
    Range range;
    // Strided rather than leading rows: data are often sorted, by time or by label.
    for (size_t start = 0; start < stride; start += (stride + kGuesses - 1) / kGuesses) {
        UnmovedSums sums{adversary, {}, {}};
        Total mass;
        for (size_t n = start; n < size; n += stride) {
            const double own = samples.masses.mass[n];
            mass.add(own);
            const double margin = margin_of(samples, model, n);
            sums.add(Lanes::load_part(&margin, 1), Lanes::load_part(&own, 1));
        }
        // Masses are not normalised to the part: the budget is scaled to it instead.
        const double epsilon = samples.ball.epsilon * mass.sum;
        const Unmoved top = sums.sums();
        // If flips alone spend the budget, the multiplier is at least the dual norm, the top end.
        double multiplier = adversary.dual_norm;
        if (top.cost < epsilon) {
            Search search(samples, adversary, model, nullptr);
            search.close({start, stride}, top, epsilon);
            multiplier = search.multiplier();
        }
        range.low = smaller(range.low, multiplier);
        range.high = larger(range.high, multiplier);
    }
    return range;
}

// Flips alone use up the budget: nothing moves, the box does not matter, and [flips] applies.
BoxResult by_labels(const Samples& samples, const Adversary& adversary, Vector margins,
                   WorstMoves* moves) {
    const FlipsResult result =
        worst_hinge_labels(margins, samples.masses, samples.ball, adversary.dual_norm,
                           adversary.floor, moves ? moves->shares : Vector());
    if (moves) {
        const ConstVector y = samples.masses.y;
        // The lower end flips, the upper keeps; the shares say how much of each sample is flipped.
        std::transform(y.begin(), y.end(), moves->labels[0].begin(), [](double v) { return -v; });
        std::copy(y.begin(), y.end(), moves->labels[1].begin());
        // Not to move: for l1 a step is a threshold on |w|, above which nothing lies.
        const double step = adversary.norm == Norm::l1 ? kInfinity : 0.0;
        for (int end : {0, 1}) std::fill(moves->steps[end].begin(), moves->steps[end].end(), step);
    }
    return {result.value, result.proof, result.multiplier, result.slope_b, result.constant};
}

BoxResult by_moves(const Samples& samples, const Adversary& adversary, const Model& model,
                  const Unmoved& top, const double* margins, const Destination& to,
                  Vector subgradient) {
    // With few samples the whole bracket is searched; with many, the guess saves passes over X.
    Search search(samples, adversary, model, margins);
    if (samples.X.rows > kGuessAbove && adversary.dual_norm > 0.0) {
        const Range range = guess_multiplier(samples, adversary, model);
        search.close_around(range.low, range.high, samples.ball.epsilon, to);
    } else {
        search.close({}, top, samples.ball.epsilon);
    }
    Buffer<> mean_moves(adversary.size);
    BoxResult result = search.settle(to, mean_moves);
    // v = -E[y' x' ...] = rows' residual, plus where the moves carry the rows: sign(w) times the
    // mean move, since every move raises the loss.
    result.slope_b = sum(to.residual.data(), to.residual.size());
    result.mass += sum_of_magnitudes(to.residual);
    transposed_times(samples.X, to.residual, subgradient);
    for (size_t i = 0; i < adversary.size; ++i)
        subgradient[adversary.feature[i]] += adversary.sign[i] * mean_moves[i];
    return result;
}

}  // namespace

BoxResult worst_in_box(const Samples& samples, const Model& model, Vector subgradient,
                      WorstMoves* moves) {
    const Adversary adversary(samples, model);
    const size_t size = samples.X.rows;
    // Margins are kept until labels turn out not to use up the budget; of many samples they are
    // then worked out again, since memory counts for more.
    Buffer<> margins(size);
    const Unmoved top = unmoved(samples, adversary, model, margins.data());
    if (!std::isfinite(top.value)) {  // some w.x overflows
        std::fill(subgradient.begin(), subgradient.end(), top.value);
        const double nan = std::nan("");
        return {nan, nan, nan, nan, nan};
    }
    // At the dual norm flips alone already spend the budget, so the multiplier is at least that.
    if (top.cost >= samples.ball.epsilon) {
        const BoxResult result = by_labels(samples, adversary, margins, moves);
        transposed_times(samples.X, margins, subgradient);
        return result;
    }
    if (size > kGuessAbove)
        return by_moves(samples, adversary, model, top, nullptr, {margins, moves}, subgradient);
    // Few samples: margins and residuals both fit, and margins are not computed again.
    Buffer<> residual(size);
    return by_moves(samples, adversary, model, top, margins.data(), {residual, moves}, subgradient);
}

void displace(const Samples& samples, const Model& model, ConstVector labels, ConstVector steps,
              Matrix points) {
    const Adversary adversary(samples, model);
    Buffer<> memory(Eight::memory_size(adversary));
    const Eight eight(memory.data(), adversary);
    for (size_t n = 0; n < labels.size(); ++n)
        std::copy_n(samples.X[n].data(), samples.X.columns, points[n].data());
    for (size_t start = 0; start < labels.size(); start += kLanes) {
        const size_t count = std::min(kLanes, labels.size() - start);
        Row list[kLanes];
        double step[kLanes] = {};
        for (size_t k = 0; k < count; ++k) {
            list[k] = static_cast<Row>(start + k);
            step[k] = steps[start + k];
        }
        // Rooms of a kept label are those to its disadvantage. With the atom's own label in place
        // of the sample's, flipped or not, these are the right ones.
        for (size_t k = 0; k < kLanes; ++k) eight.y()[k] = k < count ? labels[start + k] : 0.0;
        fill_rooms(samples, adversary, {list, count}, eight);
        const auto room = [&](size_t i) { return Lanes::load(eight.room(kKeep, i)); };
        apply_moves(adversary, Lanes::load(step), room, [&](size_t i, const Lanes& lanes) {
            double move[kLanes];
            lanes.store(move);
            const size_t p = adversary.feature[i];
            for (size_t k = 0; k < count; ++k) {
                const double x = samples.X[start + k][p];
                double target = x - labels[start + k] * adversary.sign[i] * move[k];
                // A point that was rounded outwards would cost more than was accounted for; the
                // radius is a promise.
                if (std::fabs(target - x) > move[k]) target = std::nextafter(target, x);
                // And never outside the box, where an added move may end by a last bit.
                points[start + k][p] =
                    smaller(larger(target, samples.box.low[p]), samples.box.high[p]);
            }
        });
    }
}

MeanHinge hinge_of_atoms(const Samples& samples, const Model& model, const WorstMoves& moves,
                         Vector slope) {
    const size_t size = samples.X.rows, width = samples.X.columns;
    Buffer<> memory(size * width), factors(size), scores(size), slope_at_end(width);
    const Matrix points{memory.data(), size, width, width};
    // The points of both ends are made and evaluated like any data: this is the slope of the hinge
    // under Q, whatever loss the search was for, [paper].
    std::fill(slope.begin(), slope.end(), 0.0);
    Total mass, slope_b;
    for (int end : {0, 1}) {
        const ConstVector labels = moves.labels[end];
        displace(samples, model, labels, moves.steps[end], points);
        times(points, model.w, scores);
        for (size_t n = 0; n < size; ++n) {
            const double share = end == 0 ? moves.shares[n] : 1.0 - moves.shares[n];
            const double weight = samples.masses.mass[n] * share;
            // A sample that was left alone keeps its own label.
            const double label = labels[n] != 0.0 ? labels[n] : samples.masses.y[n];
            const double loss = 1.0 - label * (scores[n] + model.intercept);
            factors[n] = loss > 0.0 && weight > 0.0 ? -weight * label : 0.0;
            mass.add(std::fabs(factors[n]));
            slope_b.add(factors[n]);
        }
        transposed_times(points, factors, slope_at_end);
        for (size_t p = 0; p < width; ++p) slope[p] += slope_at_end[p];
    }
    return {mass.sum, slope_b.sum};
}

size_t first_outside(ConstMatrix X, const Box& box) {
    for (size_t n = 0; n < X.rows; ++n) {
        const double* row = X[n].data();
        bool outside = false;  // no branches inside a row
        for (size_t p = 0; p < X.columns; ++p)
            outside |= (row[p] < box.low[p]) | (row[p] > box.high[p]);
        if (outside) return n;
    }
    return X.rows;
}

}  // namespace fdrsvm::risk
