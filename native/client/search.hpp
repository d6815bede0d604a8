// Searches in one dimension: for lam alone, and along a Newton direction.
#pragma once

#include "lagrangian.hpp"

namespace fdrsvm::client {

// The lam that minimises the augmented Lagrangian at this w: bracketed by doubling, then found by
// secants and bisection. Reads margins and shifted, spoils projected.
double centre_lam(const Space& space, const Stage& stage, const Point& point);

// A step along the space's direction (margin_changes = rows times it) at which the slope is small
// compared with the first one: 1 if it serves, otherwise by secants kept inside a bracket.
double search_step(const Space& space, const Stage& stage, const Point& point, double slope);

}  // namespace fdrsvm::client
