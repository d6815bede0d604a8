#include "../core/products.hpp"
#include "lane_maths.hpp"
#include "risk.hpp"

namespace fdrsvm::risk {

FlipsResult worst_without_box(const Samples& samples, const Model& model, Vector slope) {
    // Two products with X and one pass over the samples: nothing else grows with the data.
    Buffer<> margins(samples.X.rows);
    times(samples.X, model.w, margins);
    for (size_t n = 0; n < margins.size(); ++n)
        margins[n] = samples.masses.y[n] * (margins[n] + model.intercept);
    const FlipsResult result =
        worst_hinge_labels(margins, samples.masses, samples.ball,
                           dual_norm(model.w, samples.ball.norm), samples.floor, {});
    transposed_times(samples.X, margins, slope);  // by now residuals
    return result;
}

void add_norm_subgradient(ConstVector w, Norm norm, double scale, Vector out) {
    // At w = 0 the subdifferential is the whole ball; 0 is the choice that keeps w at 0.
    const double size = dual_norm(w, norm);
    if (size == 0.0) return;
    double n_largest = 0.0;
    for (double each : w) n_largest += std::fabs(each) == size;
    for (size_t p = 0; p < w.size(); ++p) {
        const double sign = w[p] > 0.0 ? 1.0 : w[p] < 0.0 ? -1.0 : 0.0;
        if (norm == Norm::linf)
            out[p] += scale * sign;
        else if (norm == Norm::l2)
            out[p] += scale * (w[p] / size);
        else
            out[p] += scale * ((std::fabs(w[p]) == size ? sign : 0.0) / n_largest);
    }
}

}  // namespace fdrsvm::risk
