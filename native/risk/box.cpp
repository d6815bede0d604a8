#include <algorithm>

#include "../core/products.hpp"
#include "risk.hpp"
#include "search.hpp"

namespace fdrsvm::risk {

namespace {

constexpr size_t kGuessAbove = 20'000;  // samples
constexpr size_t kGuessRows = 1024;
constexpr size_t kGuesses = 8;

// Adds up the worst case at the dual norm.
struct UnmovedSums {
    const Adversary& adversary;
    LaneTotal flipped, value;

    void add(const Lanes& margin, const Lanes& mass) {
        const Lanes one = Lanes::all(1.0), floor = Lanes::all(adversary.floor);
        const Lanes kept = larger(one - margin, floor);
        Lanes loss = kept;
        if (adversary.flips) {
            const Lanes toll = Lanes::all(adversary.kappa * adversary.dual_norm);
            const Mask flips = is_above(one + margin - kept, toll);
            flipped.add(only(flips, mass));
            loss = larger(choose(flips, one + margin - toll, kept), floor);
        }
        value.add(mass * loss);
    }
    Unmoved sums() const {
        const double mass = flipped.sum();
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
    for (size_t start = 0; start < stride; start += (stride + kGuesses - 1) / kGuesses) {
        UnmovedSums sums{adversary, {}, {}};
        Total mass;
        for (size_t n = start; n < size; n += stride) {
            const double own = samples.masses.mass[n];
            mass.add(own);
            const double margin = margin_of(samples, model, n);
            sums.add(Lanes::load_part(&margin, 1), Lanes::load_part(&own, 1));
        }
        const double epsilon = samples.ball.epsilon * mass.sum;
        const Unmoved top = sums.sums();
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

// Flips alone use up the budget: nothing moves, and the box does not matter.
BoxResult by_labels(const Samples& samples, const Adversary& adversary, Vector margins,
                   WorstMoves* moves) {
    const FlipsResult result =
        worst_hinge_labels(margins, samples.masses, samples.ball, adversary.dual_norm,
                           adversary.floor, moves ? moves->shares : Vector());
    if (moves) {
        const ConstVector y = samples.masses.y;
        std::transform(y.begin(), y.end(), moves->labels[0].begin(), [](double v) { return -v; });
        std::copy(y.begin(), y.end(), moves->labels[1].begin());
        const double step = adversary.norm == Norm::l1 ? kInfinity : 0.0;
        for (int end : {0, 1}) std::fill(moves->steps[end].begin(), moves->steps[end].end(), step);
    }
    return {result.value, result.proof, result.multiplier, result.slope_b, result.constant};
}

BoxResult by_moves(const Samples& samples, const Adversary& adversary, const Model& model,
                  const Unmoved& top, const double* margins, const Destination& to,
                  Vector subgradient) {
    Search search(samples, adversary, model, margins);
    if (samples.X.rows > kGuessAbove && adversary.dual_norm > 0.0) {
        const Range range = guess_multiplier(samples, adversary, model);
        search.close_around(range.low, range.high, samples.ball.epsilon, to);
    } else {
        search.close({}, top, samples.ball.epsilon);
    }
    Buffer<> mean_moves(adversary.size);
    BoxResult result = search.settle(to, mean_moves);
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
    if (top.cost >= samples.ball.epsilon) {
        const BoxResult result = by_labels(samples, adversary, margins, moves);
        transposed_times(samples.X, margins, subgradient);
        return result;
    }
    if (size > kGuessAbove)
        return by_moves(samples, adversary, model, top, nullptr, {margins, moves}, subgradient);
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
        // Rooms of a kept label: to its disadvantage, whichever it is.
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
                // Rounded outwards: the radius is a promise.
                if (std::fabs(target - x) > move[k]) target = std::nextafter(target, x);
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
    std::fill(slope.begin(), slope.end(), 0.0);
    Total mass, slope_b;
    for (int end : {0, 1}) {
        const ConstVector labels = moves.labels[end];
        displace(samples, model, labels, moves.steps[end], points);
        times(points, model.w, scores);
        for (size_t n = 0; n < size; ++n) {
            const double share = end == 0 ? moves.shares[n] : 1.0 - moves.shares[n];
            const double weight = samples.masses.mass[n] * share;
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
