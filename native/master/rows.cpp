#include "rows.hpp"

#include "../core/products.hpp"

namespace fdrsvm::master {

namespace {

// Eight columns times `Width`: as many sums as fit into registers while the rows go by. Each entry
// of `out` is one chain of additions in the order of the rows, on every instruction set and for
// every width, so the tiling changes no bit, [same-bits].
template <size_t Width>
void add_columns(ConstMatrix rows, const double* factors, double sign, size_t column, double* out) {
    Lanes total[Width];
    for (size_t c = 0; c < Width; ++c) total[c] = Lanes::load(out + column + c * kLanes);
    for (size_t k = 0; k < rows.rows; ++k) {
        const Lanes factor = Lanes::all(sign * factors[k]);
        const double* row = rows.data + k * rows.stride + column;
        for (size_t c = 0; c < Width; ++c) total[c] += factor * Lanes::load(row + c * kLanes);
    }
    for (size_t c = 0; c < Width; ++c) total[c].store(out + column + c * kLanes);
}

// R v of the rows that hold |w_p| below its group's bound, or for l1 below s.
void times_norm_rows(const Problem& problem, const RowPlaces& at, const Variables& v, Vector out) {
    const Transport& groups = problem.transport;
    double sum = 0.0;
    for (size_t j = 0; j < groups.n_groups(problem.n_normed); ++j) {
        // For l1 all rows share one bound, s itself.
        const double bound = problem.has_bounds() ? v.bounds()[j] : v.s();
        sum += bound;
        for (size_t p = groups.start(j); p < groups.start(j + 1); ++p) {
            out[at.up + p] = v.w()[p] - bound;
            out[at.down + p] = -v.w()[p] - bound;
        }
    }
    if (problem.has_sum()) out[at.sum] = sum - v.s();
}

void add_transposed_norm_rows(const Problem& problem, const RowPlaces& at, ConstVector z,
                              double sign, Variables& out) {
    const Transport& groups = problem.transport;
    const double price = problem.has_sum() ? z[at.sum] : 0.0;  // what a unit of any a costs
    double onto_s = price;
    for (size_t j = 0; j < groups.n_groups(problem.n_normed); ++j) {
        double onto_bound = price;
        for (size_t p = groups.start(j); p < groups.start(j + 1); ++p) {
            const double up = z[at.up + p], down = z[at.down + p];
            out.w()[p] += sign * (up - down);
            if (problem.has_bounds())
                onto_bound = onto_bound - up - down;
            else
                onto_s += up + down;
        }
        if (problem.has_bounds()) out.bounds()[j] += sign * onto_bound;
    }
    out.s() -= sign * onto_s;
}

}  // namespace

void add_transposed_product(ConstMatrix rows, const double* factors, double sign, double* out) {
    size_t column = 0;
    for (; column + 4 * kLanes <= rows.stride; column += 4 * kLanes)
        add_columns<4>(rows, factors, sign, column, out);
    for (; column + 2 * kLanes <= rows.stride; column += 2 * kLanes)
        add_columns<2>(rows, factors, sign, column, out);
    if (column < rows.stride) add_columns<1>(rows, factors, sign, column, out);
}

// Padding is zero in both, so the product may run over it: whole lanes need no special end.
void padded_product(ConstMatrix rows, ConstVector x, Vector out) {
    times({rows.data, rows.rows, rows.stride, rows.stride}, x, out);
}

void times_rows(const Problem& problem, const Variables& v, Vector out) {
    const RowPlaces at(problem);
    padded_product(problem.cuts, v.padded_x(), out);
    for (size_t g = 0; g < problem.n_clients(); ++g)
        for (size_t k = problem.starts[g]; k < problem.starts[g + 1]; ++k) out[k] -= v.theta()[g];
    if (problem.has_norm_rows()) times_norm_rows(problem, at, v, out);
    out[at.reach] = v.s();
    if (problem.has_intercept()) {
        out[at.intercept] = v.w()[problem.n_normed];
        out[at.intercept + 1] = -v.w()[problem.n_normed];
    }
    if (problem.levelled)
        out[at.level] = dot(problem.alphas.data(), v.theta(), problem.n_clients());
}

void add_transposed_rows(const Problem& problem, ConstVector z, double theta_price, double sign,
                         Variables& out) {
    const RowPlaces at(problem);
    add_transposed_product(problem.cuts, z.data(), sign, out.padded_x().data());
    for (size_t g = 0; g < problem.n_clients(); ++g) {
        const size_t start = problem.starts[g];
        // Stationarity in theta_g: the multipliers of a client's cuts sum to its price. This is why
        // multipliers over prices are shares, [model-bound].
        const double onto_cuts = sum(z.data() + start, problem.starts[g + 1] - start);
        out.theta()[g] += sign * (problem.alphas[g] * theta_price - onto_cuts);
    }
    if (problem.has_norm_rows()) add_transposed_norm_rows(problem, at, z, sign, out);
    out.s() += sign * z[at.reach];
    if (problem.has_intercept())
        out.w()[problem.n_normed] += sign * (z[at.intercept] - z[at.intercept + 1]);
}

void add_curved(const Problem& problem, const double* x, double sign, double* out) {
    if (problem.has_metric()) {  // symmetric, so its columns are its rows
        add_transposed_product(problem.metric, x, sign, out);
        return;
    }
    for (size_t j = 0; j < problem.width(); ++j) out[j] += sign * (problem.curvature[j] * x[j]);
}

Buffer<> row_offsets(const Problem& problem) {
    const RowPlaces at(problem);
    Buffer<> offsets(at.count, 0.0);
    for (size_t k = 0; k < problem.n_cuts(); ++k) offsets[k] = problem.constants[k];
    offsets[at.reach] = -problem.reach;
    if (problem.has_intercept())
        offsets[at.intercept] = offsets[at.intercept + 1] = -problem.intercept_reach;
    if (problem.levelled) offsets[at.level] = -problem.level;
    return offsets;
}

}  // namespace fdrsvm::master
