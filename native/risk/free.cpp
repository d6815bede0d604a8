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
                           dual_norm(model.w, samples.ball.transport), samples.floor, {});
    transposed_times(samples.X, margins, slope);  // by now residuals
    return result;
}

}  // namespace fdrsvm::risk
