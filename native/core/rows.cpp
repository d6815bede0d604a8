#include "rows.hpp"

#include <algorithm>

namespace fdrsvm {

namespace {

constexpr size_t kBlock = TransposedSum::kBlock;

// out[r] = total[r].sum() for r < 4, the four side by side where registers are long enough. The
// shuffles pair the same lanes as `Lanes::sum` does, so the bits are the same.
FDRSVM_INLINE void sum_four(const Lanes* total, double* out) {
#if defined(__AVX__) && (defined(__GNUC__) || defined(__clang__))
    typedef double Four __attribute__((vector_size(32)));
    Four four[4];
    for (size_t r = 0; r < 4; ++r) {
#if defined(__AVX512F__)
        four[r] = __builtin_shufflevector(total[r].regs[0], total[r].regs[0], 0, 1, 2, 3) +
                  __builtin_shufflevector(total[r].regs[0], total[r].regs[0], 4, 5, 6, 7);
#else
        four[r] = total[r].regs[0] + total[r].regs[1];
#endif
    }
    const Four rows_02 = __builtin_shufflevector(four[0], four[2], 0, 1, 4, 5) +
                         __builtin_shufflevector(four[0], four[2], 2, 3, 6, 7);
    const Four rows_13 = __builtin_shufflevector(four[1], four[3], 0, 1, 4, 5) +
                         __builtin_shufflevector(four[1], four[3], 2, 3, 6, 7);
    const Four sums = __builtin_shufflevector(rows_02, rows_13, 0, 4, 2, 6) +
                      __builtin_shufflevector(rows_02, rows_13, 1, 5, 3, 7);
    std::memcpy(out, &sums, sizeof sums);
#else
    for (size_t r = 0; r < 4; ++r) out[r] = total[r].sum();
#endif
}

FDRSVM_INLINE void times_four(const double* row, size_t stride, const double* x, double* out) {
    Lanes total[4];
    for (Lanes& sum : total) sum = Lanes::all(0.0);
    for (size_t j = 0; j < stride; j += kLanes) {
        const Lanes x_j = Lanes::load(x + j);
        for (size_t r = 0; r < 4; ++r) total[r] += Lanes::load(row + r * stride + j) * x_j;
    }
    sum_four(total, out);
}

// Rows that count in a transposed product, and by how much.
struct Block {
    const double* row[kBlock];
    double scale[kBlock];
    size_t size = 0;
};

// Adds the block's part of `Width` times eight columns to out.
template <size_t Width>
FDRSVM_INLINE void add_columns(const Block& block, size_t column, double* out) {
    Lanes even[Width], odd[Width];
    for (size_t c = 0; c < Width; ++c) even[c] = odd[c] = Lanes::all(0.0);
    const auto add = [&](size_t k, Lanes* sums) {
        const Lanes scale = Lanes::all(block.scale[k]);
        const double* row = block.row[k] + column;
        for (size_t c = 0; c < Width; ++c) sums[c] += Lanes::load(row + c * kLanes) * scale;
    };
    size_t k = 0;
    for (; k + 2 <= block.size; k += 2) {
        add(k, even);
        add(k + 1, odd);
    }
    if (k < block.size) add(k, even);
    for (size_t c = 0; c < Width; ++c) {
        double* to = out + column + c * kLanes;
        (Lanes::load(to) + (even[c] + odd[c])).store(to);
    }
}

void add_block(const Block& block, size_t columns, double* out) {
    size_t j = 0;
    for (; j + 2 * kLanes <= columns; j += 2 * kLanes) add_columns<2>(block, j, out);
    if (j < columns) add_columns<1>(block, j, out);
}

}  // namespace

void times(const Rows& rows, const double* x, double* out) {
    if (!rows.is_sparse()) {
        const ConstMatrix& dense = rows.dense;
        for (size_t n = 0; n < dense.rows; n += 4)
            times_four(dense.data + n * dense.stride, dense.stride, x, out + n);
        return;
    }
    for (size_t n = 0; n < rows.count; ++n) out[n] = row_dot(rows, n, x);
}

TransposedSum::TransposedSum(const Rows& rows, double* out) : rows_(rows), out_(out) {
    std::fill_n(out, padded(rows.width), 0.0);
}

void TransposedSum::add(size_t first, size_t count, const double* x) {
    if (rows_.is_sparse()) {
        for (size_t k = 0; k < count; ++k)
            if (x[k] != 0.0) add_row(rows_, first + k, x[k], out_);
        return;
    }
    Block block;
    const double* row = rows_.dense.data + first * rows_.dense.stride;
    // Every row is written where the next one that counts belongs, and the count decides whether it
    // stays: near a solution half of the multipliers are 0 in no order, and a branch would
    // mispredict.
    for (size_t k = 0; k < count; ++k, row += rows_.dense.stride) {
        block.row[block.size] = row;
        block.scale[block.size] = x[k];
        block.size += x[k] != 0.0;
    }
    add_block(block, rows_.dense.columns, out_);
}

void transposed_times(const Rows& rows, const double* x, double* out) {
    TransposedSum sum(rows, out);
    const size_t count = padded(rows.count);
    for (size_t first = 0; first < count; first += kBlock)
        sum.add(first, std::min(kBlock, count - first), x + first);
}

double row_dot(const Rows& rows, size_t n, const double* x) {
    if (!rows.is_sparse()) return dot(rows.dense[n].data(), x, rows.dense.columns);
    double total = 0.0;
    for (std::int32_t k = rows.indptr[n]; k < rows.indptr[n + 1]; ++k)
        total += rows.data[k] * x[rows.indices[k]];
    return total;
}

void add_row(const Rows& rows, size_t n, double scale, double* out) {
    if (!rows.is_sparse()) {
        add_scaled(out, scale, rows.dense[n].data(), rows.dense.columns);
        return;
    }
    for (std::int32_t k = rows.indptr[n]; k < rows.indptr[n + 1]; ++k)
        out[rows.indices[k]] += scale * rows.data[k];
}

void add_squared_row(const Rows& rows, size_t n, double scale, double* out) {
    if (!rows.is_sparse()) {
        const double* row = rows.dense[n].data();
        for (size_t j = 0; j < rows.dense.columns; ++j) out[j] += scale * row[j] * row[j];
        return;
    }
    for (std::int32_t k = rows.indptr[n]; k < rows.indptr[n + 1]; ++k)
        out[rows.indices[k]] += scale * rows.data[k] * rows.data[k];
}

}  // namespace fdrsvm
