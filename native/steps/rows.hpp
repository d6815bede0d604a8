// A client's samples, dense or CSR, and what steps on mini-batches need of them.
#pragma once

#include <cstdint>

#include "../core/lanes.hpp"

namespace fdrsvm::steps {

using Indices = std::span<const std::int64_t>;

// Sparse rows: those of row n are the entries from indptr[n] to indptr[n + 1].
struct Sparse {
    const double* data = nullptr;
    const std::int32_t* indices = nullptr;
    const std::int32_t* indptr = nullptr;
};

// One of the two has the rows; `dense` has the number of features in either case.
struct Rows {
    ConstMatrix dense;
    Sparse sparse;

    size_t n_features() const { return dense.columns; }
    bool is_sparse() const { return sparse.indptr != nullptr; }
};

struct Samples {
    Rows rows;
    ConstVector y;
    ConstVector mass;
};

// Sets out = 1 - y_n (w.x_n + b) over the batch: the hinge loss where it is positive. A model is
// the features' weights and, if it is one longer, the intercept.
void batch_slacks(const Samples& samples, Indices batch, ConstVector model, Vector out);

// Sets out += sum over the batch of scale (x_n, 1).
void add_samples(const Rows& rows, Indices batch, ConstVector scales, Vector out);

}  // namespace fdrsvm::steps
