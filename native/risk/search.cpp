#include "search.hpp"

#include <algorithm>
#include <numeric>

#include "../core/products.hpp"

namespace fdrsvm::risk {

namespace {

// Far beyond what convergence takes: a guard against a loop that rounding keeps alive.
constexpr int kMaxSteps = 500;
// With this many samples the kinks of the objective lie so close that it looks smooth.
constexpr size_t kSmoothFrom = 1000;  // samples
constexpr double kBeyond = 0.05;      // of the way from the nearer end
constexpr size_t kPiece = 512;        // rows whose margins are worked out at once
// Samples by eight are kept from look to look, ready made or at least gathered, if they take no
// more numbers than this (4 MB), or than this part of the data.
constexpr size_t kStored = size_t{1} << 19;
constexpr size_t kStoredPart = 9;

}  // namespace

// By the same sum of lanes as `times`, so that a margin has the same bits wherever it is computed:
// a sample must not change sides between two looks.
double margin_of(const Samples& samples, const Model& model, size_t n) {
    const double score = dot(samples.X[n].data(), model.w.data(), model.w.size());
    return samples.masses.y[n] * (score + model.intercept);
}

void fill_margins(const Samples& samples, const Model& model, size_t start, Vector margins) {
    const size_t size = std::min(margins.size(), samples.X.rows - start);
    times({samples.X[start].data(), size, samples.X.columns, samples.X.stride}, model.w,
          margins.first(size));
    const double* y = samples.masses.y.data() + start;
    for (size_t n = 0; n < size; ++n) margins[n] = y[n] * (margins[n] + model.intercept);
}

// Used again for every opening of the bracket, without new memory.
void Settled::clear() {
    loss = cost = LaneTotal();
    std::fill_n(moves.data(), moves.size(), 0.0);
}

void Search::reserve(size_t size) {
    // Once per search: the looks themselves take no memory.
    const size_t padded = size / kLanes * kLanes + kLanes;
    rows_ = Buffer<Row>(padded);
    dropped_ = Buffer<Row>(padded);
    for (Buffer<>& costs : costs_) costs = Buffer<>(padded);
    values_ = Buffer<>(padded);
    scratch_ = Buffer<>(Eight::memory_size(adversary_));
    for (Settled* settled : {&common_, &low_, &high_}) *settled = Settled(adversary_.size);
    // `padded` has at least one more place than samples, for what is written and not kept.
}

std::span<const Row> Search::rows_from(size_t first) const {
    return {rows_.data() + first, std::min(kLanes, n_rows_ - first)};
}

void Search::gather(std::span<const Row> rows, const Eight& eight) const {
    double margins[kLanes] = {};
    for (size_t k = 0; k < rows.size(); ++k)
        margins[k] = margins_ ? margins_[rows[k]] : margin_of(samples_, model_, rows[k]);
    gather_eight(samples_, adversary_, Lanes::load(margins), rows, eight);
}

void Search::fill(std::span<const Row> rows, const Eight& eight) const {
    gather(rows, eight);
    complete_eight(adversary_, true, eight);
}

// The eight samples from `first` on, with rooms and bends: from the store if they are there, else
// made in the scratch memory.
Eight Search::eight_at(size_t first) {
    const Eight eight(scratch_.data(), adversary_);
    if (stored_ == kNothing) {
        fill(rows_from(first), eight);
        return eight;
    }
    if (stored_ == kWhole) return stored_at(first);
    // Rooms overwrite the features in place, so the stored group is copied first.
    std::copy_n(stored_at(first).margin(), stored_size(kGathered), scratch_.data());
    complete_eight(adversary_, true, eight);
    return eight;
}

Eight Search::stored_at(size_t first) {
    return Eight(store_.data() + first / kLanes * stored_size(stored_), adversary_);
}

size_t Search::stored_size(Stored what) const {
    return what == kWhole ? Eight::memory_size(adversary_) : Eight::gathered_size(adversary_);
}

void Search::store(Stored what) {
    const size_t each = stored_size(what), n_eights = (n_rows_ + kLanes - 1) / kLanes;
    store_ = Buffer<>();  // the old one first: memory must not hold both at once
    store_ = Buffer<>(n_eights * each);
    for (size_t first = 0; first < n_rows_; first += kLanes) {
        const Eight eight(store_.data() + first / kLanes * each, adversary_);
        gather(rows_from(first), eight);
        if (what == kWhole) complete_eight(adversary_, true, eight);
    }
    stored_ = what;
}

// Ready-made samples save making rooms and bends at every look; gathered ones at least save reading
// scattered rows. As samples are dropped, more of what is left fits, hence the check at each look.
void Search::store_if_small() {
    const size_t n_eights = (n_rows_ + kLanes - 1) / kLanes;
    const size_t room = std::max(kStored, samples_.X.rows * samples_.X.columns / kStoredPart);
    for (Stored what : {kWhole, kGathered})
        if (what > stored_ && n_eights * stored_size(what) <= room) return store(what);
}

// The upper end is known without a look: above the dual norm no move pays, so `top` has its value
// and cost. The first look is at the same multiplier from below, where everything may move.
void Search::close(const Stride& rows, const Unmoved& top, double epsilon) {
    const size_t size = samples_.X.rows;
    reserve((size - rows.start + rows.step - 1) / rows.step);
    for (size_t n = rows.start; n < size; n += rows.step) rows_[n_rows_++] = static_cast<Row>(n);
    epsilon_ = epsilon;
    const double lam = adversary_.dual_norm;
    upper_ = {{lam, false}, top.value + epsilon * lam, epsilon - top.cost};
    // Costs that are not known yet differ from everything, so no sample counts as linear before it
    // has been looked at from both ends.
    std::fill_n(costs_[kLower].data(), n_rows_, -1.0);
    std::fill_n(costs_[kUpper].data(), n_rows_, -2.0);
    if (lam > 0.0) search({lam, true});
}

bool Search::is_lower_better() const {
    return lower_.lam.value >= 0.0 && lower_.lam.value < upper_.lam.value &&
           lower_.value < upper_.value;
}

// Both ends bracket the minimiser; the better of the two is within rounding of it.
double Search::multiplier() const { return (is_lower_better() ? lower_ : upper_).lam.value; }

// Looks at `first`, unless it is negative, and then wherever the bracket says.
void Search::search(const Multiplier& first) {
    if (first.value >= 0.0 && probe(first)) return;
    for (int step = 0; step < kMaxSteps; ++step) {
        const double lam = next_multiplier(step);
        if (lam < 0.0 || probe({lam, false})) return;
    }
}

// Moves one end of the bracket to lam; true if lam is the minimiser, and hence both ends are.
//
// The slope is epsilon minus the mean cost, so spending more than epsilon makes lam a lower end. At
// the dual norm every sample may turn at once; its cheapest choice, not to move, is already known,
// so the dearest is looked at. Other kinks are hit only by accident; the tangents find them.
bool Search::probe(const Multiplier& lam) {
    store_if_small();
    LaneTotal value, cost;
    for (size_t first = 0; first < n_rows_; first += kLanes) {
        const Eight eight = eight_at(first);
        const Look look = look_at(eight, adversary_, lam);
        const Lanes mass = Lanes::load(eight.mass());
        look.value.store(values_.data() + first);
        look.cost.store(costs_[kLatest].data() + first);
        value.add(mass * look.value);
        cost.add(mass * look.cost);
    }
    // The dropped samples are one line: cost line_cost_, value line_value_ - line_cost_ lam.
    const double mean_cost = line_cost_ + cost.sum();
    const double mean_value = (line_value_ - line_cost_ * lam.value) + value.sum();
    const bool beyond = mean_cost > epsilon_ || (lam.dearest && mean_cost == epsilon_);
    (beyond ? lower_ : upper_) = {lam, mean_value + epsilon_ * lam.value, epsilon_ - mean_cost};
    // Costs at both ends are what tells linear samples from bent ones.
    std::swap(costs_[beyond ? kLower : kUpper], costs_[kLatest]);
    if (beyond && lam.dearest) return true;
    // Even a multiplier of 0 does not spend the budget: there is nothing more to gain.
    if (lam.value == 0.0 && !beyond) {
        lower_ = upper_;
        return true;
    }
    drop_linear(lam.value);
    return false;
}

// Drops samples with the same slope at both ends: a convex function with the same slope at both
// ends of an interval is linear in between. Their contribution is kept as one line, so later looks
// cost only the samples that still bend: near the end a handful.
void Search::drop_linear(double lam) {
    size_t bent = 0;
    for (size_t i = 0; i < n_rows_; ++i) bent += costs_[kLower][i] != costs_[kUpper][i];
    // Compacting moves every sample that stays; for less than a quarter it is not worth it.
    if (4 * bent > 3 * n_rows_) return;
    // Compensated: a million small contributions are added over many drops, and what is lost here
    // would be missing from every later value.
    Total value, cost;
    value.sum = line_value_;
    cost.sum = line_cost_;
    size_t kept = 0;
    for (size_t i = 0; i < n_rows_; ++i) {
        const double own_cost = costs_[kLower][i];
        if (own_cost == costs_[kUpper][i]) {
            const double mass = samples_.masses.mass[rows_[i]];
            value.add(mass * (values_[i] + own_cost * lam));
            cost.add(mass * own_cost);
            dropped_[n_dropped_++] = rows_[i];
            continue;
        }
        rows_[kept] = rows_[i];
        costs_[kLower][kept] = costs_[kLower][i];
        costs_[kUpper][kept] = costs_[kUpper][i];
        if (stored_ != kNothing) copy_stored(i, kept);
        ++kept;
    }
    line_value_ = value.sum;
    line_cost_ = cost.sum;
    n_rows_ = kept;
    // The last group of eight is filled up with samples of no mass, so that no look needs a tail.
    if (stored_ != kNothing)
        for (size_t i = kept; i % kLanes != 0; ++i) stored_at(i).mass()[i % kLanes] = 0.0;
}

// A sample is one lane of a group: its numbers lie eight apart.
void Search::copy_stored(size_t from, size_t to) {
    if (from == to) return;
    const size_t each = stored_size(stored_);
    const double* source = store_.data() + from / kLanes * each + from % kLanes;
    double* target = store_.data() + to / kLanes * each + to % kLanes;
    for (size_t q = 0; q < each; q += kLanes) target[q] = source[q];
}

// Where to look next, or -1 if the ends already prove the minimum to rounding.
//
// Where the objective is piecewise linear its tangents end the search; where it is smooth the
// minimiser of the cubic through values and slopes is much faster. They take turns.
double Search::next_multiplier(int step) const {
    const double high = upper_.lam.value, low = lower_.lam.value;
    // No lower end yet: half the dual norm first, since the multiplier is often large; then 0,
    // where the search must end.
    if (low < 0.0) return high == adversary_.dual_norm ? 0.5 * high : 0.0;
    const double width = high - low, turn = upper_.slope - lower_.slope;
    const auto if_inside = [&](double lam) { return low < lam && lam < high ? lam : -1.0; };
    // Where the tangents at both ends meet, from the lower end; turn > 0, as slopes differ in sign.
    const double advance = (lower_.value - upper_.value + upper_.slope * width) / turn;
    // This close to the lower end the difference of the values is mostly rounding: a short fixed
    // step brings the upper end near instead.
    if (advance < 1e-7 * width) return if_inside(low + 1e-6 * width);
    // Convexity: the objective lies above both tangents, hence above where they meet.
    const double bound = lower_.value + lower_.slope * advance;
    const double scale = std::min(std::fabs(lower_.value), std::fabs(upper_.value)) +
                         std::fabs(lower_.slope * advance);
    if (std::min(lower_.value, upper_.value) - bound <= 1e-16 * scale) return -1.0;
    // A cubic alone tends to move the same end again and again. Where many samples, or l2, make the
    // objective smooth, a second cubic, a little beyond its minimiser, brings the other end near.
    const bool is_smooth = adversary_.norm == Norm::l2 || n_rows_ > kSmoothFrom;
    if (step % 2 == 0 || (is_smooth && step % 4 == 1)) {
        // The minimiser of the cubic through both values and slopes (Nocedal and Wright, Numerical
        // Optimization, equation 3.59).
        const double middle =
            lower_.slope + upper_.slope - 3.0 * (upper_.value - lower_.value) / width;
        const double root = std::sqrt(larger(middle * middle - lower_.slope * upper_.slope, 0.0));
        double lam = low + width * (1.0 - (upper_.slope + root - middle) / (turn + 2.0 * root));
        if (step % 4 == 1)
            lam += high - lam < lam - low ? kBeyond * (lam - high) : kBeyond * (lam - low);
        if (low < lam && lam < high) return lam;  // not so if squares of steep slopes overflow
    }
    return if_inside(low + advance);
}

// Adds what the moves behind a look do, computed from the moves themselves and not from the look's
// value: the proof must not share the dual's arithmetic, [mixture].
void Search::settle_eight(const Eight& eight, const Look& look, const Lanes& mass,
                          Settled& settled) {
    const Lanes one = Lanes::all(1.0), none = Lanes::all(0.0);
    const Mask flipped = is_above(none, look.turn), alone = is_equal(look.turn, none);
    // A sample at the floor costs nothing and moves nowhere, but its loss counts.
    const Lanes moving = choose(alone, none, mass);
    const auto room = [&](size_t i) {
        return choose(flipped, Lanes::load(eight.room(kFlip, i)),
                      Lanes::load(eight.room(kKeep, i)));
    };
    const auto add_move = [&](size_t i, const Lanes& move) {
        double* sum = settled.moves.data() + kLanes * i;
        (Lanes::load(sum) + moving * move).store(sum);
    };
    const MoveSums sums = apply_moves(adversary_, look.step, room, add_move);
    const Lanes loss = one - look.turn * Lanes::load(eight.margin()) + sums.gain;
    settled.loss.add(mass * choose(alone, Lanes::all(adversary_.floor), loss));
    const Lanes flip_price = only(flipped, Lanes::all(adversary_.flips ? adversary_.kappa : 0.0));
    settled.cost.add(moving * (sums.length + flip_price));
}

namespace {

// Writes the first `count` lanes to the places of the rows.
void scatter(const Lanes& lanes, std::span<const Row> rows, double* to) {
    double values[kLanes];
    lanes.store(values);
    for (size_t k = 0; k < rows.size(); ++k) to[rows[k]] = values[k];
}

}  // namespace

// One multiplier's mean value and cost over all rows, while the bracket is opened.
struct Search::Opening {
    Multiplier lam;
    LaneTotal value, cost;

    Opening(const Multiplier& at) : lam(at) {}
    void add(const Look& look, const Lanes& mass) {
        value.add(mass * look.value);
        cost.add(mass * look.cost);
    }
    End end(double epsilon) const {
        return {lam, value.sum() + epsilon * lam.value, epsilon - cost.sum()};
    }
};

// Whether the multiplier is too small here: more than epsilon is spent. At the dual norm's dearest
// choice spending exactly epsilon counts, as in `probe`.
bool Search::is_beyond(const End& end) const {
    return end.slope < 0.0 || (end.lam.dearest && end.slope == 0.0);
}

// Looks at all rows at both ends of an interval at once, so that rows are read and prepared once
// for two looks. What is linear on the interval is settled right away. Where both ends are the dual
// norm everything is settled, except samples whose labels differ: their residuals depend on the
// share, which is not known yet.
void Search::open(const Multiplier& left, const Multiplier& right, const Destination& to) {
    Opening low(left), high(right);
    LaneTotal line_value, line_cost;
    n_rows_ = 0;
    for (Settled* settled : {&common_, &low_, &high_}) settled->clear();
    // Both ends are the dual norm: the minimiser is there, and only the share is open.
    const bool is_final = left.value == right.value;
    const Eight eight(scratch_.data(), adversary_);
    const Lanes none = Lanes::all(0.0), one = Lanes::all(1.0), lam = Lanes::all(right.value);
    double margins[kPiece];
    for (size_t n = 0; n < samples_.X.rows; n += kLanes) {
        // Margins of a piece at a time: its rows are still in the cache when they are gathered.
        if (n % kPiece == 0) fill_margins(samples_, model_, n, {margins, kPiece});
        Row list[kLanes];
        std::iota(list, list + kLanes, static_cast<Row>(n));
        const std::span<const Row> rows(list, std::min(kLanes, samples_.X.rows - n));
        const Lanes margin = load_up_to(margins + n % kPiece, rows.size());
        gather_eight(samples_, adversary_, margin, rows, eight);
        complete_eight(adversary_, !is_final, eight);
        const Look down = look_at(eight, adversary_, left), up = look_at(eight, adversary_, right);
        const Lanes mass = Lanes::load(eight.mass());
        low.add(down, mass);
        high.add(up, mass);
        // At the dual norm a move as good as none costs differently but changes no label, so labels
        // decide; elsewhere equal costs mean that the sample is linear in between.
        const Mask ready = is_final ? is_equal(down.turn, up.turn) : is_equal(down.cost, up.cost);
        const Lanes settled = only(ready, mass);
        line_value.add(settled * (up.value + up.cost * lam));
        line_cost.add(settled * up.cost);
        if (is_final) {
            settle_eight(eight, down, settled, low_);
            settle_eight(eight, up, settled, high_);
        } else {
            settle_eight(eight, up, settled, common_);
        }
        write(up, eight, rows, kUpper, to);
        if (to.moves) write(is_final ? down : up, eight, rows, kLower, to);
        double costs[2][kLanes], waits[kLanes];
        choose(ready, none, one).store(waits);
        down.cost.store(costs[kLower]);
        up.cost.store(costs[kUpper]);
        // Written always, counted only if it waits: no branch that could be mispredicted.
        for (size_t k = 0; k < rows.size(); ++k) {
            rows_[n_rows_] = list[k];
            costs_[kLower][n_rows_] = costs[kLower][k];
            costs_[kUpper][n_rows_] = costs[kUpper][k];
            n_rows_ += waits[k] != 0.0;
        }
    }
    lower_ = low.end(epsilon_);
    upper_ = high.end(epsilon_);
    line_value_ = line_value.sum();
    line_cost_ = line_cost.sum();
}

void Search::close_around(double low, double high, double epsilon, const Destination& to) {
    reserve(samples_.X.rows);
    epsilon_ = epsilon;
    const double top = adversary_.dual_norm;
    // If all guesses agree, the multiplier is near, but probably not exactly there.
    if (low == high && high < top) low = 0.99 * high;
    // Candidates in ascending order, the dual norm twice: dearest, then cheapest. Starting from the
    // guess, move on until the slope changes its sign between two neighbours. A wrong guess costs
    // passes over the data, never the answer.
    Multiplier marks[5] = {{0.0, false}};
    size_t n_marks = 1, at = 0;
    for (double guess : {low, high})
        if (guess > marks[n_marks - 1].value && guess < top) marks[n_marks++] = {guess, false};
    marks[n_marks++] = {top, true};
    marks[n_marks++] = {top, false};
    while (at + 2 < n_marks && marks[at].value < low) ++at;
    while (true) {
        open(marks[at], marks[at + 1], to);
        if (is_beyond(upper_) && at + 2 < n_marks) {
            ++at;
        } else if (!is_beyond(lower_) && at > 0) {
            --at;
        } else {
            break;
        }
    }
    // At the dual norm: both ends are the minimiser, and only the share between them is open.
    if (lower_.lam.dearest) return;
    if (!is_beyond(lower_))
        upper_ = lower_;  // nothing is left to gain, and the budget is not spent
    else
        search({-1.0, false});
}

void Search::write(const Look& look, const Eight& eight, std::span<const Row> rows, int end,
                   const Destination& to) const {
    const Lanes labels = look.turn * Lanes::load(eight.y());
    if (end == kUpper)
        scatter(Lanes::all(0.0) - Lanes::load(eight.mass()) * labels, rows, to.residual.data());
    if (!to.moves) return;
    scatter(labels, rows, to.moves->labels[end].data());
    scatter(look.step, rows, to.moves->steps[end].data());
}

// Dropped samples are linear on the bracket, so their move is the same anywhere in it; the upper
// end, where less moves, is taken.
void Search::settle_dropped(const Destination& to) {
    const Eight eight(scratch_.data(), adversary_);
    for (size_t first = 0; first < n_dropped_; first += kLanes) {
        const std::span<const Row> rows(dropped_.data() + first,
                                        std::min(kLanes, n_dropped_ - first));
        fill(rows, eight);
        const Look look = look_at(eight, adversary_, upper_.lam);
        settle_eight(eight, look, Lanes::load(eight.mass()), common_);
        write(look, eight, rows, kLower, to);
        write(look, eight, rows, kUpper, to);
    }
}

BoxResult Search::settle(const Destination& to, Vector mean_moves) {
    // No lower end was ever found: the budget is not spent even by everything that pays, so there
    // is nothing to mix.
    if (lower_.lam.value < 0.0) lower_ = upper_;
    settle_dropped(to);
    // Only samples that differ between the ends are mixed. Mixing all of them would add and
    // subtract the common part, which is nearly everything.
    Settled &low = low_, &high = high_;
    // The costs and values of the last look are not needed any more: their memory holds the labels.
    Buffer<>&labels_low = costs_[kLatest], &labels_high = values_;
    for (size_t first = 0; first < n_rows_; first += kLanes) {
        const Eight eight = eight_at(first);
        const Look down = look_at(eight, adversary_, lower_.lam);
        const Look up = look_at(eight, adversary_, upper_.lam);
        const Mask alike = both(is_equal(down.turn, up.turn), is_equal(down.step, up.step));
        const Lanes mass = Lanes::load(eight.mass());
        const Lanes differing = choose(alike, Lanes::all(0.0), mass);
        settle_eight(eight, up, only(alike, mass), common_);
        settle_eight(eight, up, differing, high);
        settle_eight(eight, down, differing, low);
        write(down, eight, rows_from(first), kLower, to);
        write(up, eight, rows_from(first), kUpper, to);
        (down.turn * Lanes::load(eight.y())).store(labels_low.data() + first);
        (up.turn * Lanes::load(eight.y())).store(labels_high.data() + first);
    }
    // The share of the lower, dearer end at which the mean cost is epsilon. Clamped, since rounding
    // must not make a distribution that is outside the ball.
    const double cost = common_.cost.sum() + high.cost.sum();
    const double dearer = low.cost.sum() - high.cost.sum();
    const double share = dearer > 0.0 ? smaller(larger((epsilon_ - cost) / dearer, 0.0), 1.0) : 0.0;
    // Residuals of the mixture, and the mass that cancels in them: a sample that is kept and
    // flipped in equal shares has residual 0, but all of its mass is inside the margin.
    BoxResult result;
    Total cancelled;  // mass of samples that go either way with different labels
    for (size_t i = 0; i < n_rows_; ++i) {
        const double low_label = labels_low[i], high_label = labels_high[i];
        const double mass = samples_.masses.mass[rows_[i]];
        const double mixed = high_label + share * (low_label - high_label);
        to.residual[rows_[i]] = -mass * mixed;
        const double both =
            std::fabs(high_label) + share * (std::fabs(low_label) - std::fabs(high_label));
        cancelled.add(mass * (both - std::fabs(mixed)));
    }
    result.mass = cancelled.sum;
    // One share for all samples: any other mixture with the same mean cost is as bad, and this one
    // does not depend on their order.
    if (to.moves) std::fill(to.moves->shares.begin(), to.moves->shares.end(), share);
    for (size_t i = 0; i < adversary_.size; ++i) {
        const auto sum = [i](const Settled& settled) {
            return Lanes::load(settled.moves.data() + kLanes * i).sum();
        };
        mean_moves[i] = (sum(common_) + sum(high)) + share * (sum(low) - sum(high));
    }
    result.proof =
        (common_.loss.sum() + high.loss.sum()) + share * (low.loss.sum() - high.loss.sum());
    // On a kink both ends have the same value, and the upper one, where less moves, rounds less.
    const End& best = is_lower_better() ? lower_ : upper_;
    result.value = best.value;
    result.multiplier = best.lam.value;
    return result;
}

}  // namespace fdrsvm::risk
