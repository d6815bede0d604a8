// Samples as rows, dense or CSR, and their products with vectors.
//
// Dense rows have zeros up to a multiple of eight columns and, after the last row, rows of zeros up
// to a multiple of eight: no loop over them has a tail. Vectors that go with them are as long, and
// zero (or anything finite that meets a zero) beyond the end. CSR rows have neither.
#pragma once

#include <cstdint>

#include "choices.hpp"

namespace fdrsvm {

struct Rows {
    size_t count = 0;   // of samples ...
    size_t width = 0;   // ... and columns, without padding
    ConstMatrix dense;  // padded both ways; empty where rows are CSR
    ConstVector data;
    std::span<const std::int32_t> indices;
    std::span<const std::int32_t> indptr;

    bool is_sparse() const { return dense.data == nullptr; }
};

// Sets out[n] = rows[n] . x. A dense row is one sum of eight lanes, a CSR row one plain sum.
void times(const Rows& rows, const double* x, double* out);

// Sums rows' x into out[0 .. padded(width)), `kBlock` rows at a time, so that whoever computes x
// can do it block by block. Rows with x[n] = 0 are left out. A dense column's part of a block is
// two sums: over the even and over the odd ones among the rows that are left.
class TransposedSum {
  public:
    static constexpr size_t kBlock = 64;

    TransposedSum(const Rows& rows, double* out);

    // Adds x[k] rows[first + k] for k < count <= kBlock. The padding counts as rows.
    void add(size_t first, size_t count, const double* x);

  private:
    const Rows& rows_;
    double* out_;
};

// Sets out[0 .. padded(width)) = rows' x, for an x that is padded as the rows are.
void transposed_times(const Rows& rows, const double* x, double* out);

// rows[n] . x, in the shape that `times` has.
double row_dot(const Rows& rows, size_t n, const double* x);

// out += scale rows[n], and out += scale rows[n]^2.
void add_row(const Rows& rows, size_t n, double scale, double* out);
void add_squared_row(const Rows& rows, size_t n, double scale, double* out);

}  // namespace fdrsvm
