#include "problem.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fdrsvm::client {

namespace {

// Above these widths Newton's matrix is not formed: its Cholesky factor would cost more than
// conjugate gradients do, earlier for sparse rows, whose products are cheap.
constexpr size_t kMaxDenseWidth = 800, kMaxSparseWidth = 400;

// 2^round(log2(size)) for size > 0, without a logarithm, whose last bit differs between libraries.
// Dividing by a power of two rounds nothing, so the unit changes no bit of an answer.
double power_of_two(double size) {
    int exponent = 0;
    const double mantissa = std::frexp(size, &exponent);  // in [0.5, 1)
    return std::ldexp(1.0, mantissa < std::sqrt(0.5) ? exponent - 1 : exponent);
}

// Power of two nearest the median root, over the squares that are not 0: a constant column or an
// outlier must not set the unit of all others.
double typical_size(const std::vector<double>& squares) {
    std::vector<double> sorted;
    for (double square : squares)
        if (square > 0.0) sorted.push_back(square);
    if (sorted.empty()) return 1.0;
    std::sort(sorted.begin(), sorted.end());
    const size_t half = sorted.size() / 2;
    const bool is_even = sorted.size() % 2 == 0;
    const double median = is_even ? 0.5 * (sorted[half - 1] + sorted[half]) : sorted[half];
    return power_of_two(std::sqrt(median));
}

void copy_padded(ConstVector from, double* to) {
    std::copy(from.begin(), from.end(), to);
    std::fill(to + from.size(), to + padded(from.size()), 0.0);
}

}  // namespace

double largest_of(const double* values, size_t size) {
    Lanes largest = Lanes::all(0.0);
    size_t i = 0;
    for (; i + kLanes <= size; i += kLanes)
        largest = larger(magnitude(Lanes::load(values + i)), largest);
    largest = larger(magnitude(Lanes::load_part(values + i, size - i)), largest);
    double lane[kLanes];
    largest.store(lane);
    return *std::max_element(lane, lane + kLanes);
}

// Rows and columns up to multiples of eight: whole lanes, and groups of rows, without a tail.
void Samples::make_room(size_t count, size_t width) {
    const size_t columns = padded(width), n_padded = padded(count);
    values_ = Buffer<>(n_padded * columns);
    rows.count = count;
    rows.width = width;
    rows.dense = {values_.data(), n_padded, columns, columns};
    std::fill(values_.data() + count * columns, values_.data() + n_padded * columns, 0.0);
}

Samples::Samples(ConstMatrix X, ConstVector y, ConstVector masses, double largest,
                 bool fit_intercept)
    : mass(padded(X.rows)), labels(padded(X.rows)) {
    make_room(X.rows, X.columns + size_t(fit_intercept));
    copy_padded(masses, mass.data());
    copy_padded(y, labels.data());
    const size_t columns = rows.dense.stride;
    const double first = power_of_two(largest);  // so that no square overflows
    const double inverse = 1.0 / first;          // exact, as all products with it
    std::vector<double> squares(columns, 0.0);
    for (size_t n = 0; n < X.rows; ++n) {
        const double* from = X.data + n * X.stride;
        double* to = values_.data() + n * columns;
        // Signed rows: the margin is then the row times (w, b), and labels appear nowhere else.
        const double sign = y[n] * inverse;
        for (size_t j = 0; j < X.columns; ++j) to[j] = sign * from[j];
        std::fill(to + X.columns, to + columns, 0.0);
        for (size_t j = 0; j < columns; ++j) squares[j] += to[j] * to[j];
    }
    for (double& square : squares) square /= static_cast<double>(X.rows);
    // Two divisions, since the typical size is only known after the first: both are exact.
    const double second = typical_size(squares);
    const double rest = 1.0 / second;
    for (size_t n = 0; n < X.rows; ++n) {
        double* row = values_.data() + n * columns;
        for (size_t j = 0; j < columns; ++j) row[j] *= rest;
        if (fit_intercept) row[X.columns] = y[n];
    }
    scale = first * second;
}

Samples::Samples(const Rows& sparse, ConstVector y, ConstVector masses, double given_scale)
    : mass(padded(sparse.count)),
      labels(padded(sparse.count)),
      scale(given_scale),
      values_(sparse.data.size()),
      indices_(sparse.indices.size()),
      indptr_(sparse.indptr.size()) {
    copy_padded(masses, mass.data());
    copy_padded(y, labels.data());
    std::copy(sparse.data.begin(), sparse.data.end(), values_.data());
    std::copy(sparse.indices.begin(), sparse.indices.end(), indices_.data());
    std::copy(sparse.indptr.begin(), sparse.indptr.end(), indptr_.data());
    rows.count = sparse.count;
    rows.width = sparse.width;
    rows.data = values_;
    rows.indices = indices_;
    rows.indptr = indptr_;
}

Samples::Samples(const Samples& all, size_t stride) : scale(all.scale) {
    std::vector<size_t> chosen;
    size_t weighted = 0;  // weights may be 0 on every stride-th sample
    for (size_t n = 0; n < all.rows.count; ++n)
        if (all.mass[n] != 0.0 && weighted++ % stride == 0) chosen.push_back(n);
    make_room(chosen.size(), all.rows.width);
    mass = Buffer<>(padded(chosen.size()), 0.0);
    labels = Buffer<>(padded(chosen.size()), 0.0);
    for (size_t k = 0; k < chosen.size(); ++k) {
        const double* row = all.rows.dense.data + chosen[k] * all.rows.dense.stride;
        std::copy_n(row, rows.dense.stride, values_.data() + k * rows.dense.stride);
        mass[k] = all.mass[chosen[k]];
        labels[k] = all.labels[chosen[k]];
    }
    // A subset is a distribution of its own: its masses sum to 1 again.
    const double total = sum(mass.data(), mass.size());
    for (double& each : std::span<double>(mass)) each /= total;
}

Problem::Problem(std::shared_ptr<const Samples> the_samples, bool with_intercept, const Ball& ball_,
                 const Penalties& penalties_)
    : samples(std::move(the_samples)),
      fit_intercept(with_intercept),
      given(ball_),
      ball(ball_),
      penalties(penalties_),
      intercept_rho(penalties_.rho) {
    const double scale = samples->scale;
    // At epsilon = 0 lam costs nothing and can be made so large that no flip pays, [local].
    ball.kappa =
        ball_.epsilon > 0.0 ? ball_.kappa / scale : std::numeric_limits<double>::infinity();
    ball.epsilon = ball_.epsilon / scale;
    // Divided twice, not by the square: scale may be up to 1e200, [unit].
    penalties.rho = penalties_.rho / scale / scale;
    penalties.tau = penalties_.tau / scale / scale;
}

Terms Problem::terms_of(const Samples& subset) const {
    const Rows& rows = subset.rows;
    const double count = static_cast<double>(samples->rows.count);
    const double features = static_cast<double>(n_features());
    // The cone's penalty in units of epsilon. With many more features than samples the norm does
    // most of the work, and a larger one takes 300 x 20 000 from 113 steps to 31, [stage].
    const double spread = smaller(larger(1.0, 3.0 * features / count), 300.0);
    Terms terms;
    terms.rows = &rows;
    terms.mass = subset.mass.data();
    terms.n_padded = padded(rows.count);
    terms.width = rows.width;
    terms.n_normed = n_features();
    terms.theta = penalties.rho + 2.0 * penalties.tau;
    terms.intercept_curvature = intercept_rho;
    terms.epsilon = ball.epsilon;
    terms.flips = std::isfinite(ball.kappa);
    terms.kappa = terms.flips ? ball.kappa : 0.0;
    terms.norm = ball.norm;
    // The loss at 0 is 1, so a minimiser has ||w||_* <= 1/epsilon; without a radius it is a guess.
    terms.reach = ball.epsilon > 0.0 ? 1.0 / ball.epsilon : 10.0;
    terms.cone_scale = ball.epsilon * spread;
    terms.wide = rows.width > (rows.is_sparse() ? kMaxSparseWidth : kMaxDenseWidth);
    return terms;
}

}  // namespace fdrsvm::client
