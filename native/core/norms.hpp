// Transport norms on features, and the dual norms that price a weight vector.
#pragma once

#include <cmath>

#include "lanes.hpp"

namespace fdrsvm {

enum class Norm : int { l1 = 1, l2 = 2, linf = 3 };

inline namespace FDRSVM_COPY {

inline bool all_finite(ConstVector x) {
    for (double value : x)
        if (!std::isfinite(value)) return false;
    return true;
}

inline double largest_magnitude(ConstVector x) {
    double largest = 0.0;
    for (double value : x) largest = std::fabs(value) > largest ? std::fabs(value) : largest;
    return largest;
}

inline double sum_of_magnitudes(ConstVector x) {
    return sum_lanes(x.size(), [&](size_t i, size_t count) {
        double magnitudes[kLanes] = {};
        for (size_t k = 0; k < count; ++k) magnitudes[k] = std::fabs(x[i + k]);
        return Lanes::load(magnitudes);
    });
}

// Squares neither overflow nor vanish.
inline double euclidean_length(ConstVector x) {
    const double largest = largest_magnitude(x);
    if (largest == 0.0) return 0.0;
    const double squares = sum_lanes(x.size(), [&](size_t i, size_t count) {
        const Lanes scaled = load_up_to(x.data() + i, count) / Lanes::all(largest);
        return scaled * scaled;
    });
    return largest * std::sqrt(squares);
}

// Dual of the transport norm: max |w| (l1), ||w||_2 (l2), sum |w| (linf).
inline double dual_norm(ConstVector w, Norm norm) {
    if (norm == Norm::linf) return sum_of_magnitudes(w);
    return norm == Norm::l1 ? largest_magnitude(w) : euclidean_length(w);
}

}  // namespace FDRSVM_COPY
}  // namespace fdrsvm
