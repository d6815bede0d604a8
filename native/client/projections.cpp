#include "projections.hpp"

#include <algorithm>
#include <cmath>

namespace fdrsvm::client {

namespace {

// The t >= 0 with t = offset + sum_p max(0, |x_p| - t), or 0. Newton from the left on a piecewise
// linear function: monotone and finite, and nothing has to be sorted.
double threshold(const double* x, size_t size, double offset) {
    double t = 0.0;
    for (size_t round = 0; round < size + 2; ++round) {
        const Lanes at = Lanes::all(t), zero = Lanes::all(0.0), one = Lanes::all(1.0);
        Lanes total = zero, count = zero;
        for (size_t p = 0; p < size; p += kLanes) {
            const Lanes x_p = magnitude(Lanes::load(x + p));
            const Choice above = below(at, x_p);
            total += choose(above, x_p, zero);
            count += choose(above, one, zero);
        }
        const double next = (offset + total.sum()) / (1.0 + count.sum());
        // The same set again gives the same t to the last bit, so this ends. A test like
        // total <= count * t could run P passes for a rounding error.
        if (!(next > t)) break;
        t = next;
    }
    return t;
}

// Entries above sigma are cut down to it, which pulls sigma up: sigma is their common threshold.
ConeProjection project_linf(const double* x, size_t size, double s, double* out) {
    const double sigma = threshold(x, size, s);  // |out_p| <= sigma
    const Lanes high = Lanes::all(sigma), low = Lanes::all(-sigma);
    for (size_t p = 0; p < size; p += kLanes)
        smaller(larger(Lanes::load(x + p), low), high).store(out + p);
    return {sigma, sigma};
}

ConeProjection project_l1(const double* x, size_t size, double s, double* out) {
    // Entries shrink by t, which raises sigma by as much: s + t = sum max(0, |x_p| - t).
    const double cut = threshold(x, size, -s);
    const Lanes zero = Lanes::all(0.0), at = Lanes::all(cut);
    Lanes sigma = zero;
    for (size_t p = 0; p < size; p += kLanes) {
        const Lanes x_p = Lanes::load(x + p);
        const Lanes left = larger(magnitude(x_p) - at, zero);
        choose(below(x_p, zero), zero - left, left).store(out + p);
        sigma += left;
    }
    // Inside already: sigma stays what it was, to the last bit.
    if (cut == 0.0) return {s, 0.0};
    return {sigma.sum(), cut};
}

// The second-order cone, in closed form: inside, in the polar cone (the tip), or onto the boundary.
ConeProjection project_l2(const double* x, size_t size, double s, double* out) {
    const double length = std::sqrt(dot(x, x, size));
    double scale = 0.0;
    if (length <= s)
        scale = 1.0;
    else if (length > -s)
        scale = 0.5 * (1.0 + s / length);
    for (size_t p = 0; p < size; ++p) out[p] = scale * x[p];
    return {length <= s ? s : scale * length, length};
}

double sign_of(double x) { return double(x > 0.0) - double(x < 0.0); }

}  // namespace

ConeProjection project_cone(const double* x, size_t size, double s, Norm norm, double* out) {
    if (norm == Norm::linf) return project_linf(x, size, s, out);
    return norm == Norm::l1 ? project_l1(x, size, s, out) : project_l2(x, size, s, out);
}

void cone_curvature(const Terms& terms, const double* x, double s, const ConeProjection& projection,
                    size_t size, ConeCurvature& curvature) {
    const size_t lam = terms.width, n = terms.n_normed;
    double *diagonal = curvature.diagonal, *low_0 = curvature.low[0], *low_1 = curvature.low[1];
    for (double* each : {diagonal, low_0, low_1}) std::fill_n(each, size, 0.0);
    curvature.weight[0] = curvature.weight[1] = 0.0;
    // Projected to the tip: constant around it, no curvature.
    if (projection.sigma <= 0.0) return;
    const double threshold = projection.threshold;
    // Inside the cone the projection is the identity. (For linf the general case covers it.)
    const bool is_inside = terms.norm == Norm::l1 ? threshold == 0.0 : threshold <= s;
    if (terms.norm == Norm::linf) {
        // Entries that are cut off move together with sigma, the others freely.
        double count = 1.0;
        for (size_t p = 0; p < n; ++p) {
            const bool is_cut = std::fabs(x[p]) > projection.sigma;
            low_0[p] = is_cut ? sign_of(x[p]) : 0.0;
            diagonal[p] = is_cut ? 0.0 : 1.0;
            count += is_cut ? 1.0 : 0.0;
        }
        low_0[lam] = -1.0;
        curvature.weight[0] = 1.0 / count;
    } else if (is_inside) {
        std::fill_n(diagonal, n, 1.0);
        diagonal[lam] = 1.0;
    } else if (terms.norm == Norm::l1) {
        // Entries above the threshold move freely, except for what their common threshold takes
        // back: the negative rank-one term.
        double count = 1.0;
        for (size_t p = 0; p < n; ++p) {
            if (std::fabs(x[p]) > threshold) {
                diagonal[p] = 1.0;
                low_1[p] = sign_of(x[p]);
                count += 1.0;
            }
        }
        diagonal[lam] = 1.0;
        low_1[lam] = 1.0;
        curvature.weight[1] = -1.0 / count;
    } else {
        // Along the boundary x/|x| moves with sigma by one half; across it, by the ratio below.
        const double across = 0.5 * (1.0 + s / threshold);
        for (size_t p = 0; p < n; ++p) {
            diagonal[p] = across;
            low_0[p] = low_1[p] = x[p] / threshold;
        }
        low_0[lam] = -1.0;
        curvature.weight[0] = 0.5;
        curvature.weight[1] = -across;
    }
}

}  // namespace fdrsvm::client
