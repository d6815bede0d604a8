#include "linear_algebra.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace fdrsvm {

namespace {

// A pivot this small against its diagonal entry is rounding: dividing by it would fill the answer
// with noise.
constexpr double kVanished = 1e-15;
// Rows of a factor that are subtracted from the rest of it at a time, so that they stay in the
// cache while all later rows go by.
constexpr size_t kPanel = 64;
// Rows of a result that are summed side by side: a loaded column serves four sums, and four
// independent sums hide the latency of an addition.
constexpr size_t kTile = 4;

// `n_rows` rows, `stride` numbers apart; data points to the columns that are meant.
struct Columns {
    const double* data;
    size_t stride;
    size_t n_rows;
};

// total[t] += (or -=) sum over the rows of left[t] times eight columns.
template <size_t Tile, bool Subtract>
FDRSVM_INLINE void add_tile(const Columns& left, const double* right, size_t right_stride,
                            Lanes* total) {
    for (size_t n = 0; n < left.n_rows; ++n) {
        const Lanes columns = Lanes::load(right + n * right_stride);
        for (size_t t = 0; t < Tile; ++t) {
            const Lanes product = Lanes::all(left.data[n * left.stride + t]) * columns;
            total[t] = Subtract ? total[t] - product : total[t] + product;
        }
    }
}

template <size_t Tile>
FDRSVM_INLINE void load_tile(const double* from, size_t stride, Lanes* tile) {
    for (size_t t = 0; t < Tile; ++t) tile[t] = Lanes::load(from + t * stride);
}

template <size_t Tile>
FDRSVM_INLINE void store_tile(const Lanes* tile, double* to, size_t stride) {
    for (size_t t = 0; t < Tile; ++t) tile[t].store(to + t * stride);
}

// The part of a Gram matrix in `Tile` rows from i on.
template <size_t Tile>
void add_gram_rows(ConstMatrix rows, size_t i, Matrix out) {
    const Columns left{rows.data + i, rows.stride, rows.rows};
    for (size_t j = i / kLanes * kLanes; j < out.stride; j += kLanes) {
        Lanes total[Tile];
        double* to = out.data + i * out.stride + j;
        load_tile<Tile>(to, out.stride, total);
        add_tile<Tile, false>(left, rows.data + j, rows.stride, total);
        store_tile<Tile>(total, to, out.stride);
    }
}

// Rows of a factor: what is still to be subtracted for the panel's rows before them, and for each
// other. From every entry the panel's terms are subtracted one by one in the order of the rows, for
// every shape of the tile: the bits do not depend on the tiling, [same-bits].
template <size_t Tile>
class FactorRows {
  public:
    // The panel's finished rows are start <= k < stop, stop <= i.
    FactorRows(Matrix A, size_t start, size_t stop, size_t i)
        : A_(A), panel_(A.data + start * A.stride), n_panel_(stop - start), i_(i) {
        for (size_t k = 0; k < n_panel_; ++k) {
            const double* row = panel_ + k * A.stride;
            for (size_t t = 0; t < Tile; ++t) scaled_[k][t] = row[i + t] * row[start + k];
        }
    }

    // Subtracts the panel only.
    void subtract() {
        for (size_t j = first_column(); j < A_.stride; j += kLanes) {
            Lanes tile[Tile];
            subtract_panel(j, tile);
            store_tile<Tile>(tile, at(j), A_.stride);
        }
    }

    // The same, and then from each row its predecessors among these: they are finished.
    void finish(const double* diagonal) {
        Lanes tile[Tile];
        subtract_panel(first_column(), tile);
        store_tile<Tile>(tile, at(first_column()), A_.stride);
        factorise_corner(diagonal);
        subtract_each_other(tile);
        store_tile<Tile>(tile, at(first_column()), A_.stride);
        for (size_t j = first_column() + kLanes; j < A_.stride; j += kLanes) {
            subtract_panel(j, tile);
            subtract_each_other(tile);
            store_tile<Tile>(tile, at(j), A_.stride);
        }
        for (size_t t = 0; t < Tile; ++t) {
            double* row = A_.data + (i_ + t) * A_.stride;
            row[i_ + t] = inverse_[t];
            // Zeros in place of scratch, so that whole groups of lanes can be read.
            std::fill(row + first_column(), row + i_ + t, 0.0);
        }
    }

  private:
    Matrix A_;
    const double* panel_;
    size_t n_panel_;
    size_t i_;
    double scaled_[kPanel][Tile];
    double inverse_[Tile];
    double factor_[Tile][Tile];

    size_t first_column() const { return i_ / kLanes * kLanes; }
    double* at(size_t j) const { return A_.data + i_ * A_.stride + j; }

    FDRSVM_INLINE void subtract_panel(size_t j, Lanes* tile) const {
        load_tile<Tile>(at(j), A_.stride, tile);
        add_tile<Tile, true>({scaled_[0], Tile, n_panel_}, panel_ + j, A_.stride, tile);
    }

    FDRSVM_INLINE void subtract_each_other(Lanes* tile) const {
        for (size_t s = 1; s < Tile; ++s)
            for (size_t t = 0; t < s; ++t) tile[s] -= Lanes::all(factor_[t][s]) * tile[t];
    }

    // Pivots, and by how much each of these rows enters the later ones. The small corner is done
    // with plain numbers, because each pivot must wait for the one before.
    FDRSVM_INLINE void factorise_corner(const double* diagonal) {
        double corner[Tile][Tile];
        for (size_t s = 0; s < Tile; ++s)
            for (size_t t = s; t < Tile; ++t) corner[s][t] = at(0)[s * A_.stride + i_ + t];
        for (size_t t = 0; t < Tile; ++t) {
            const double pivot = corner[t][t];
            const bool is_left = pivot > kVanished * std::fabs(diagonal[i_ + t]);
            // An inverse of 0 removes the direction from every later row and from every solve.
            inverse_[t] = is_left ? 1.0 / pivot : 0.0;
            for (size_t s = t + 1; s < Tile; ++s) {
                factor_[t][s] = corner[t][s] * inverse_[t];
                for (size_t c = s; c < Tile; ++c) corner[s][c] -= factor_[t][s] * corner[t][c];
            }
        }
    }
};

// Calls body(i, the size of the tile) for tiles of rows from `first` on. The size is a constant of
// each call, so that the sums of a tile live in registers.
template <class Body>
FDRSVM_INLINE void for_tiles(size_t first, size_t last, Body body) {
    size_t i = first;
    for (; i + kTile <= last; i += kTile) body(i, std::integral_constant<size_t, kTile>());
    if (last - i == 3) body(i, std::integral_constant<size_t, 3>());
    if (last - i == 2) body(i, std::integral_constant<size_t, 2>());
    if (last - i == 1) body(i, std::integral_constant<size_t, 1>());
}

template <size_t Tile>
void finish_rows(Matrix A, size_t start, size_t i, const double* diagonal) {
    FactorRows<Tile>(A, start, i, i).finish(diagonal);
}

template <size_t Tile>
void subtract_panel(Matrix A, size_t start, size_t stop, size_t i) {
    FactorRows<Tile>(A, start, stop, i).subtract();
}

}  // namespace

void add_gram(ConstMatrix rows, Matrix out) {
    for_tiles(0, out.rows, [&](size_t i, auto tile) { add_gram_rows<tile()>(rows, i, out); });
}

void factorise(Matrix A) {
    Buffer<> diagonal(A.rows);
    for (size_t i = 0; i < A.rows; ++i) diagonal[i] = A.data[i * A.stride + i];
    for (size_t start = 0; start < A.rows; start += kPanel) {
        const size_t stop = std::min(start + kPanel, A.rows);
        for_tiles(start, stop,
                  [&](size_t i, auto tile) { finish_rows<tile()>(A, start, i, diagonal.data()); });
        for_tiles(stop, A.rows,
                  [&](size_t i, auto tile) { subtract_panel<tile()>(A, start, stop, i); });
    }
}

namespace {

// Rows and columns first <= i < last <= first + 8 of a factor, by themselves.
void solve_forward(ConstMatrix U, size_t first, size_t last, double* x, double* scaled) {
    for (size_t i = first; i < last; ++i) {
        const double* row = U.data + i * U.stride;
        const double x_i = x[i] * row[i];
        for (size_t j = i + 1; j < last; ++j) x[j] -= row[j] * x_i;
        scaled[i - first] = x_i;
    }
}

void solve_backward(ConstMatrix U, size_t first, size_t last, double* x) {
    for (size_t i = last; i-- > first;) {
        const double* row = U.data + i * U.stride;
        double x_i = x[i];
        for (size_t j = last; j-- > i + 1;) x_i -= row[j] * x[j];
        x[i] = x_i * row[i];
    }
}

}  // namespace

// Eight unknowns at a time: the small triangle by plain numbers, since each needs the ones before;
// what they contribute to the others by lanes.
void solve_factorised(ConstMatrix U, double* x) {
    double scaled[kLanes];
    for (size_t first = 0; first < U.rows; first += kLanes) {
        const size_t last = std::min(first + kLanes, U.rows);
        solve_forward(U, first, last, x, scaled);
        for (size_t j = first + kLanes; j < U.stride; j += kLanes) {
            Lanes total = Lanes::load(x + j);
            for (size_t i = first; i < last; ++i)
                total -= Lanes::load(U.data + i * U.stride + j) * Lanes::all(scaled[i - first]);
            total.store(x + j);
        }
    }
    for (size_t group = (U.rows + kLanes - 1) / kLanes; group-- > 0;) {
        const size_t first = group * kLanes, last = std::min(first + kLanes, U.rows);
        const size_t after = first + kLanes;
        for (size_t i = first; i < last; ++i)
            x[i] -= dot(U.data + i * U.stride + after, x + after, U.stride - after);
        solve_backward(U, first, last, x);
    }
}

}  // namespace fdrsvm
