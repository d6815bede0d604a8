#include "../core/products.hpp"
#include "lane_maths.hpp"
#include "risk.hpp"

namespace fdrsvm::risk {

FlipsFound worst_without_box(const Samples& samples, const Model& model, Vector slope) {
    Buffer<> margins(samples.X.rows);
    times(samples.X, model.w, margins);
    for (size_t n = 0; n < margins.size(); ++n)
        margins[n] = samples.masses.y[n] * (margins[n] + model.intercept);
    const FlipsFound found =
        worst_hinge_labels(margins, samples.masses, samples.ball,
                           dual_norm(model.w, samples.ball.norm), samples.floor, {});
    transposed_times(samples.X, margins, slope);  // by now residuals
    return found;
}

void add_norm_subgradient(ConstVector w, Norm norm, double scale, Vector out) {
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

double constant_on_box(const Tangent& tangent, const Model& model, const Box& box) {
    constexpr double kRounding = 1e-15;  // a few units in the last place
    const double touched = dot(tangent.slope.data(), model.w.data(), model.w.size()) +
                           tangent.slope_b * model.intercept;
    Total reach;
    for (size_t p = 0; p < model.w.size(); ++p)
        reach.add(std::fabs(model.w[p]) * larger(std::fabs(box.low[p]), std::fabs(box.high[p])));
    const double scale = reach.sum + std::fabs(model.intercept) + std::fabs(tangent.value);
    // A mean of hinges' tangents has no negative constant: below 0 it is what cancelled.
    const double constant = tangent.value - touched - kRounding * scale;
    return constant < 0.0 ? 0.0 : constant;
}

}  // namespace fdrsvm::risk
