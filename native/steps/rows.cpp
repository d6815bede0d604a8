#include "rows.hpp"

namespace fdrsvm::steps {

namespace {

// Scores of single rows of a matrix, each one sum of eight lanes, as in `dot`.
class RowDots {
  public:
    RowDots(ConstMatrix rows, const double* x)
        : rows_(rows),
          x_(x),
          full_(rows.columns / kLanes * kLanes),
          tail_(rows.columns - full_),
          x_tail_(Lanes::load_part(x + full_, rows.columns - full_)) {}

    double operator()(size_t n) const {
        const size_t start = n * rows_.stride;
        const double* row = rows_.data + start;
        // Eight numbers from the last full lanes on, as long as they are the matrix's own.
        if (full_ == rows_.columns || start + full_ + kLanes > rows_.rows * rows_.stride)
            return dot(row, x_, rows_.columns);
        Lanes total = Lanes::all(0.0);
        for (size_t j = 0; j < full_; j += kLanes)
            total += Lanes::load(row + j) * Lanes::load(x_ + j);
        total += tail_(Lanes::load(row + full_)) * x_tail_;
        return total.sum();
    }

  private:
    ConstMatrix rows_;
    const double* x_;
    size_t full_;
    LaneMask tail_;
    Lanes x_tail_;
};

double sparse_dot(const Sparse& rows, size_t n, const double* x) {
    double total = 0.0;
    for (std::int32_t k = rows.indptr[n]; k < rows.indptr[n + 1]; ++k)
        total += rows.data[k] * x[rows.indices[k]];
    return total;
}

}  // namespace

void batch_slacks(const Samples& samples, Indices batch, ConstVector model, Vector out) {
    const Rows& rows = samples.rows;
    const size_t n_features = rows.n_features();
    const double intercept = model.size() > n_features ? model[n_features] : 0.0;
    const RowDots dense_dot(rows.dense, model.data());
    for (size_t i = 0; i < batch.size(); ++i) {
        const size_t n = static_cast<size_t>(batch[i]);
        const double score =
            rows.is_sparse() ? sparse_dot(rows.sparse, n, model.data()) : dense_dot(n);
        out[i] = 1.0 - samples.y[n] * (score + intercept);
    }
}

void add_samples(const Rows& rows, Indices batch, ConstVector scales, Vector out) {
    const size_t n_features = rows.n_features();
    for (size_t i = 0; i < batch.size(); ++i) {
        const double scale = scales[i];
        if (scale == 0.0) continue;
        const size_t n = static_cast<size_t>(batch[i]);
        if (rows.is_sparse()) {
            const Sparse& sparse = rows.sparse;
            for (std::int32_t k = sparse.indptr[n]; k < sparse.indptr[n + 1]; ++k)
                out[static_cast<size_t>(sparse.indices[k])] += scale * sparse.data[k];
        } else {
            add_scaled(out.data(), scale, rows.dense[n].data(), n_features);
        }
        if (out.size() > n_features) out[n_features] += scale;
    }
}

}  // namespace fdrsvm::steps
