#include "products.hpp"

#include <algorithm>

namespace fdrsvm {

namespace {

constexpr size_t kSums = 4;  // independent sums hide the latency of an addition
// Numbers: a block of more would be fetched from memory once for every 16 of its columns, so it is
// taken a few rows at a time.
constexpr size_t kCached = size_t{1} << 16;
constexpr size_t kFewRows = 64;

void times_one(const double* row, const double* x, size_t size, double* out) {
    *out = dot(row, x, size);
}

// How many rows, from the first on, can be read in whole groups of lanes: what is read beyond the
// end of the others would lie beyond the end of the matrix. Of rows shorter than seven there are
// several.
size_t rows_with_room(ConstMatrix rows) {
    const size_t beyond = (kLanes - rows.columns % kLanes) % kLanes;
    const size_t others = rows.stride > 0 ? (beyond + rows.stride - 1) / rows.stride : rows.rows;
    return rows.rows - std::min(others, rows.rows);
}

// Reads up to seven numbers beyond the ends of the rows, which must have room; the mask makes them
// zero, so each row is the same sum as `dot` computes, bit for bit.
void times_four(const double* row, size_t stride, const double* x, size_t size, const Lanes& x_tail,
                const LaneMask& tail, double* out) {
    Lanes total[kSums];
    for (Lanes& sum : total) sum = Lanes::all(0.0);
    size_t j = 0;
    for (; j + kLanes <= size; j += kLanes) {
        const Lanes x_j = Lanes::load(x + j);
        for (size_t r = 0; r < kSums; ++r) total[r] += Lanes::load(row + r * stride + j) * x_j;
    }
    if (j < size)
        for (size_t r = 0; r < kSums; ++r)
            total[r] += tail(Lanes::load(row + r * stride + j)) * x_tail;
    for (size_t r = 0; r < kSums; ++r) out[r] = total[r].sum();
}

// Adds the block's part of `Width` times eight columns to out; the last eight through the mask.
template <size_t Width>
void add_columns(const double* rows, size_t stride, size_t n_rows, const double* x,
                 const LaneMask& last, double* out) {
    Lanes total[kSums][Width];
    for (auto& sums : total)
        for (Lanes& sum : sums) sum = Lanes::all(0.0);
    const auto add_row = [&](size_t n, Lanes* sums) {
        const Lanes scale = Lanes::all(x[n]);
        const double* row = rows + n * stride;
        for (size_t c = 0; c < Width; ++c) sums[c] += Lanes::load(row + c * kLanes) * scale;
    };
    size_t n = 0;
    for (; n + kSums <= n_rows; n += kSums)
        for (size_t r = 0; r < kSums; ++r) add_row(n + r, total[r]);
    for (size_t r = 0; n + r < n_rows; ++r) add_row(n + r, total[r]);
    // The four sums are added in one fixed order, whatever the width or the instruction set.
    for (size_t c = 0; c < Width; ++c) {
        Lanes sum = (total[0][c] + total[2][c]) + (total[1][c] + total[3][c]);
        if (c + 1 == Width) sum = last(sum);
        (Lanes::load(out + c * kLanes) + sum).store(out + c * kLanes);
    }
}

// Rows of one of the four sums that count, and by how much.
struct Listed {
    const double* row[kFewRows / kSums + 1];  // one place more, for what is written and not kept
    double scale[kFewRows / kSums + 1];
    size_t size = 0;

    void add(const double* next, double factor) {
        row[size] = next;
        scale[size] = factor;
        size += factor != 0.0;
    }
};

// Adds the rows' part of `Width` times eight columns to a sum.
template <size_t Width>
void add_listed(const Listed& list, size_t column, double* sum) {
    Lanes total[Width];
    for (size_t c = 0; c < Width; ++c) total[c] = Lanes::load(sum + column + c * kLanes);
    for (size_t k = 0; k < list.size; ++k) {
        const Lanes scale = Lanes::all(list.scale[k]);
        const double* row = list.row[k] + column;
        for (size_t c = 0; c < Width; ++c) total[c] += Lanes::load(row + c * kLanes) * scale;
    }
    for (size_t c = 0; c < Width; ++c) total[c].store(sum + column + c * kLanes);
}

// Adds a block whose rows are long, the same sums in another order of work: rows with x[n] = 0,
// which change no sum, are not even fetched. `sums` has room for four of `columns` numbers each.
void add_long_rows(const double* rows, size_t stride, size_t n_rows, const double* x,
                   const LaneMask& last, size_t columns, double* sums, double* out) {
    std::fill_n(sums, kSums * columns, 0.0);
    for (size_t first = 0; first < n_rows; first += kFewRows) {
        const size_t stop = std::min(first + kFewRows, n_rows);
        Listed lists[kSums];
        for (size_t n = first; n < stop; ++n) lists[n % kSums].add(rows + n * stride, x[n]);
        for (size_t r = 0; r < kSums; ++r) {
            double* sum = sums + r * columns;
            size_t j = 0;
            for (; j + 4 * kLanes <= columns; j += 4 * kLanes) add_listed<4>(lists[r], j, sum);
            for (; j < columns; j += kLanes) add_listed<1>(lists[r], j, sum);
        }
    }
    for (size_t j = 0; j < columns; j += kLanes) {
        const auto lanes_of = [&](size_t r) { return Lanes::load(sums + r * columns + j); };
        Lanes sum = (lanes_of(0) + lanes_of(2)) + (lanes_of(1) + lanes_of(3));
        if (j + kLanes == columns) sum = last(sum);
        (Lanes::load(out + j) + sum).store(out + j);
    }
}

}  // namespace

void times(ConstMatrix rows, ConstVector x, Vector out) {
    const size_t size = rows.columns, full = size / kLanes * kLanes;
    const Lanes x_tail = Lanes::load_part(x.data() + full, size - full);
    const LaneMask tail(size - full);
    const size_t with_room = rows_with_room(rows);
    size_t n = 0;
    for (; n + kSums <= with_room; n += kSums)
        times_four(rows.data + n * rows.stride, rows.stride, x.data(), size, x_tail, tail,
                   out.data() + n);
    for (; n < rows.rows; ++n) times_one(rows.data + n * rows.stride, x.data(), size, &out[n]);
}

void transposed_times(ConstMatrix rows, ConstVector x, Vector out) {
    const size_t size = rows.columns, padded = (size + kLanes - 1) / kLanes * kLanes;
    Buffer<> total(padded, 0.0);
    const LaneMask every(kLanes), tail(size + kLanes - padded);
    // Columns beyond the last of the last row belong to nobody: it is copied to where they do.
    Buffer<> last_row(padded, 0.0);
    if (rows.rows > 0)
        std::copy_n(rows.data + (rows.rows - 1) * rows.stride, size, last_row.data());
    Buffer<> sums(std::min(kRowBlock, rows.rows) * padded > kCached ? kSums * padded : 0);
    const auto add = [&](const double* first, size_t stride, size_t n_rows, const double* factors) {
        if (n_rows * padded > kCached)
            return add_long_rows(first, stride, n_rows, factors, tail, padded, sums.data(),
                                 total.data());
        for (size_t j = 0; j < padded; j += 2 * kLanes) {
            const bool ends = j + 2 * kLanes >= padded;
            if (j + kLanes >= padded)
                add_columns<1>(first + j, stride, n_rows, factors, tail, total.data() + j);
            else
                add_columns<2>(first + j, stride, n_rows, factors, ends ? tail : every,
                               total.data() + j);
        }
    };
    // Of very short rows not even the last but one has room: they are all copied.
    const bool has_room = rows_with_room(rows) + 1 >= rows.rows;
    Buffer<> copies(has_room ? 0 : std::min(kRowBlock, rows.rows) * padded, 0.0);
    size_t n = 0;
    while (n + 1 < rows.rows) {
        const size_t stop = std::min(n + kRowBlock, rows.rows - 1);
        if (has_room) {
            add(rows.data + n * rows.stride, rows.stride, stop - n, x.data() + n);
        } else {
            for (size_t k = n; k < stop; ++k)
                std::copy_n(rows.data + k * rows.stride, size, copies.data() + (k - n) * padded);
            add(copies.data(), padded, stop - n, x.data() + n);
        }
        n = stop;
    }
    if (rows.rows > 0) add(last_row.data(), padded, 1, x.data() + n);
    std::copy_n(total.data(), size, out.data());
}

}  // namespace fdrsvm
