// Projections that turn residuals into multipliers, and their derivatives, [stage].
//
// Samples  onto the triangle kept, flipped >= 0, kept + flipped <= mass; eight at a time, no branch
// Cone     onto ||out|| <= sigma in the transport norm: by a threshold for l1 and linf, a scale for
//          l2
// Cost     O(P), a few passes for the threshold
#pragma once

#include "problem.hpp"

namespace fdrsvm::client {

// Where (kept, flipped) lie in the triangle kept, flipped >= 0, kept + flipped <= mass. Numbers
// rather than an enumeration, since eight lanes of them are chosen at a time.
inline constexpr double kVertex = 0.0, kKeptEdge = 1.0, kFlippedEdge = 2.0, kInside = 3.0,
                        kFullEdge = 4.0;

struct SampleMultipliers {
    Lanes kept;
    Lanes flipped;
};

// The mass kept at the point of the edge kept + flipped = mass that is nearest to these.
FDRSVM_INLINE Lanes edge_share(const Lanes& kept, const Lanes& flipped, const Lanes& mass) {
    const Lanes share = Lanes::all(0.5) * (kept - flipped + mass);
    return smaller(larger(share, Lanes::all(0.0)), mass);
}

// Nearest points of the triangles; without Flips, of their kept sides.
template <bool Flips>
FDRSVM_INLINE SampleMultipliers project_samples(const Lanes& kept, const Lanes& flipped,
                                                const Lanes& mass) {
    const Lanes zero = Lanes::all(0.0);
    const Lanes some_kept = larger(kept, zero);
    if constexpr (!Flips) return {smaller(some_kept, mass), zero};
    const Lanes some_flipped = larger(flipped, zero);
    // Beyond the edge the nearest point of the triangle lies on it, also where a coordinate is
    // negative: clipping first and then scaling would give another point.
    const Choice inside = at_most(some_kept + some_flipped, mass);
    const Lanes on_edge = edge_share(kept, flipped, mass);
    return {choose(inside, some_kept, on_edge), choose(inside, some_flipped, mass - on_edge)};
}

// Where the projections of the same numbers lie.
template <bool Flips>
FDRSVM_INLINE Lanes places(const Lanes& kept, const Lanes& flipped, const Lanes& mass) {
    const Lanes zero = Lanes::all(0.0);
    if constexpr (!Flips) {
        const Lanes below_mass = choose(below(kept, mass), Lanes::all(kKeptEdge), zero);
        return choose(below(zero, kept), below_mass, zero);
    }
    const Lanes is_kept = choose(below(zero, kept), Lanes::all(kKeptEdge), zero);
    const Lanes is_flipped = choose(below(zero, flipped), Lanes::all(kFlippedEdge), zero);
    const Choice inside = at_most(larger(kept, zero) + larger(flipped, zero), mass);
    const Lanes on_edge = edge_share(kept, flipped, mass);
    const Lanes full = choose(below(on_edge, mass), Lanes::all(kFullEdge), zero);
    return choose(inside, is_kept + is_flipped, choose(below(zero, on_edge), full, zero));
}

// Nearest (out, sigma) to (x, s) with ||out|| <= sigma in the transport norm. `threshold` is where
// entries were cut off (l1, linf) or the length of x (l2); `cone_curvature` needs it.
struct ConeProjection {
    double sigma;
    double threshold;
};

// x has `size` entries, a multiple of eight, with zeros beyond the last feature; so has out.
ConeProjection project_cone(const double* x, size_t size, double s, Norm norm, double* out);

// Derivative of `project_cone` as diag(diagonal) + sum_i weight_i low_i low_i'.
struct ConeCurvature {
    double* diagonal;
    double* low[2];    // row 0 has a positive weight, row 1 a negative one
    double weight[2];  // 0 where there is no such row
};

// The entry after the last coefficient, `lam`, stands for lam, which enters with a minus sign.
// Fills all that `curvature` points to, `size` entries each.
void cone_curvature(const Terms& terms, const double* x, double s, const ConeProjection& projection,
                    size_t size, ConeCurvature& curvature);

}  // namespace fdrsvm::client
