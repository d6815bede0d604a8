#include "cone.hpp"

#include <cmath>
#include <limits>

#include "../core/lanes.hpp"

namespace fdrsvm::master {

namespace {

// Over the entries of w: the cone treats the first entry, s, differently everywhere.
double dot_of_rest(ConstVector x, ConstVector y) {
    return dot(x.data() + 1, y.data() + 1, x.size() - 1);
}

// s^2 - ||w||^2 as (s - ||w||)(s + ||w||): near the boundary, where the method ends, the difference
// of squares would lose all digits. 0 outside.
double squared_size(ConstVector u) {
    const double length = std::sqrt(dot_of_rest(u, u)), inside = u[0] - length;
    return (0.0 > inside ? 0.0 : inside) * (u[0] + length);
}

enum class Way { forward, inverse };

// Sets out = W x or W^-1 x.
void apply(const ConeScaling& scaling, Way way, ConstVector x, Vector out) {
    const ConstVector axis = scaling.axis;
    const bool is_forward = way == Way::forward;
    const double sign = is_forward ? 1.0 : -1.0;
    const double factor = is_forward ? scaling.eta : 1.0 / scaling.eta;
    const double along = dot_of_rest(axis, x), first = x[0];
    // W = eta (a_0, a'; a, I + a a'/(1 + a_0)) for the axis (a_0, a); its inverse has -a and 1/eta.
    const double shift = sign * first + along / (1.0 + axis[0]);
    out[0] = factor * (axis[0] * first + sign * along);
    for (size_t j = 1; j < x.size(); ++j) out[j] = factor * (x[j] + shift * axis[j]);
}

// Sets x = target e - x o y, in place: the old first entry is needed until the last.
void complement_product(Vector x, ConstVector y, double target) {
    const double inner = dot(x.data(), y.data(), x.size()), x_0 = x[0];
    for (size_t j = 1; j < x.size(); ++j) x[j] = -(x_0 * y[j] + y[0] * x[j]);
    x[0] = target - inner;
}

// Sets out to the y with lam o y = x. The first entry by the arrow matrix' inverse, the others from
// lam_0 y_j + y_0 lam_j = x_j.
void divide(ConstVector x, ConstVector lam, Vector out) {
    out[0] = (lam[0] * x[0] - dot_of_rest(lam, x)) / squared_size(lam);
    for (size_t j = 1; j < x.size(); ++j) out[j] = (x[j] - out[0] * lam[j]) / lam[0];
}

}  // namespace

void set_scaling(ConstVector u, ConstVector z, ConeScaling& scaling) {
    // The axis is the midpoint of u and J z, each scaled to hyperbolic norm 1; gamma normalises it.
    const double size_u = std::sqrt(squared_size(u)), size_z = std::sqrt(squared_size(z));
    const double inner = dot(u.data(), z.data(), u.size());
    // gamma >= 1, since u.z >= size_u size_z inside the cone: the axis is always defined.
    const double gamma = std::sqrt(0.5 * (1.0 + inner / (size_u * size_z)));
    Vector axis = scaling.axis;
    for (size_t j = 1; j < u.size(); ++j) axis[j] = 0.5 * (u[j] / size_u - z[j] / size_z) / gamma;
    axis[0] = 0.5 * (u[0] / size_u + z[0] / size_z) / gamma;
    // Carries the scale: W^2 z = u in size.
    scaling.eta = std::sqrt(size_u / size_z);
}

void add_inverse_square(const ConeScaling& scaling, ConstVector x, Vector out) {
    // W^-2 = (2 q q' - J) / eta^2 with q = J axis, J = diag(1, -1, ...)
    const ConstVector axis = scaling.axis;
    const double along = axis[0] * x[0] - dot_of_rest(axis, x);
    const double factor = 1.0 / (scaling.eta * scaling.eta);
    for (size_t j = 1; j < x.size(); ++j) out[j] += factor * (x[j] - 2.0 * along * axis[j]);
    out[0] += factor * (2.0 * along * axis[0] - x[0]);
}

void set_correction(ConeScaling& scaling, ConstVector z, const ConeSteps& steps, double target,
                    Vector out) {
    const size_t size = z.size();
    double* room = scaling.room.data();
    const Vector lam(room, size), scaled_u(room + size, size), scaled_z(room + 2 * size, size);
    // Mehrotra's second-order term is a product of the two steps, taken where primal and dual are
    // the same vector lam, and carried back by W^-1.
    apply(scaling, Way::forward, z, lam);
    apply(scaling, Way::inverse, steps.u, scaled_u);
    apply(scaling, Way::forward, steps.z, scaled_z);
    complement_product(scaled_u, scaled_z, target);
    divide(scaled_u, lam, scaled_z);
    apply(scaling, Way::inverse, scaled_z, out);
}

double longest_cone_step(ConstVector u, ConstVector step) {
    constexpr double never = std::numeric_limits<double>::infinity();
    const double a = step[0] * step[0] - dot_of_rest(step, step);
    const double b = u[0] * step[0] - dot_of_rest(u, step);
    const double c = squared_size(u);
    // c + 2 b t + a t^2, the squared size of u + t step, falls to 0 first at c / (-b + sqrt(b^2 -
    // a c)), if it does at all. This form of the root has no cancellation where b < 0, the
    // usual case of a step that leaves the cone.
    const double discriminant = b * b - a * c;
    if (discriminant < 0.0 || (a >= 0.0 && b >= 0.0)) return never;
    // A direction that stays inside never reaches 0; neither does one along the boundary.
    const double fall = -b + std::sqrt(discriminant);
    return fall > 0.0 ? c / fall : never;
}

}  // namespace fdrsvm::master
