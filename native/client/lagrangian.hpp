// The augmented Lagrangian of [stage]: its multipliers, its gradient, and an estimate of the gap.
//
// Given    w = (w, b, lam), the stage's starting multipliers, a penalty r
// Link     (a_n, f_n) = projection onto the triangle of
//          (a_n, f_n) + r p_n (1 - m_n, 1 + m_n - kappa lam);
//          (u, sigma) = projection onto the cone of (u, sigma) + r s_c (w, -lam)
// Gradient curvature w - linear - rows'(a - f) + u, and in lam epsilon - kappa sum f - sigma
// Gap      estimated: what the multipliers miss at w (slack) plus the price of the gradient
// Cost     `look`: one pass over the rows for the gradient and one over samples and unknowns
#pragma once

#include "projections.hpp"

namespace fdrsvm::client {

// Primal and dual iterate. w holds (w, b, lam), pull the multiplier of the norm; both have zeros
// beyond their ends, up to a multiple of eight, and so have kept and flipped.
struct Point {
    Point(size_t n_padded, size_t width)
        : w(padded(width + 1), 0.0),
          kept(n_padded, 0.0),
          flipped(n_padded, 0.0),
          pull(padded(width + 1), 0.0) {}

    Buffer<> w;
    Buffer<> kept;
    Buffer<> flipped;
    Buffer<> pull;
    double sigma = 0.0;
};

// Vectors of one solve, taken at once: `count` of `size` numbers each.
class Vectors {
  public:
    Vectors(size_t count, size_t size) : memory_(count * size, 0.0), size_(size) {}
    double* next() { return memory_.data() + size_ * used_++; }

  private:
    Buffer<> memory_;
    size_t size_, used_ = 0;
};

// Samples whose multipliers have a derivative, and where in their triangles these lie.
struct Band {
    Buffer<std::int32_t> sample;
    double* place;
    double* weight;  // of Newton's matrix; see newton.hpp
    double* tilt;
    size_t count = 0;
};

// What one problem and centre need, over all stages: constants of the unknowns (w, b, lam), padded
// so that no loop over them has a tail, and room for what is computed on the way.
class Space {
  public:
    Space(const Terms& terms, const double* linear, double constant);

    const Terms& terms;
    size_t n;         // samples, padded
    size_t q;         // unknowns, padded
    double constant;  // the quadratic at 0

  private:
    Vectors over_samples_, over_unknowns_;

  public:
    double *margins, *margin_changes;  // rows times w, and rows times the direction
    Band band;
    double *curvature, *linear, *is_normed;          // linear[lam] is -epsilon
    double *square_price, *flat_price, *flat_reach;  // see `stationarity_price`
    double *shifted, *pull, *projected;  // what the cone is given, and what it makes of that
    double *gradient, *direction;
    double *own, *diagonal;  // of Newton's matrix
    ConeCurvature cone;
};

// One augmented Lagrangian. Its starting multipliers are those of the point.
struct Stage {
    const double* anchor;
    const double* prox;  // weight of the pull towards the anchor
    double penalty;
    double cone_penalty;
};

// What a point looks like from one stage.
struct View {
    double slack;         // by how much the multipliers miss the losses: a stationary point's gap
    double value;         // the objective
    double price;         // what the gradient of the Lagrangian adds to the duality gap ...
    double pulled_price;  // ... and with it that of the proximal term
    ConeProjection cone;
};

// Evaluates w with the multipliers that belong to it, which are not stored; first advances the
// margins by `step`. Fills the space's gradient (of the stage, including the proximal term), band,
// shifted and pull.
View look(Space& space, const Stage& stage, const Point& point, double step);

// The same with the point's own multipliers; leaves the band unchanged.
View look_as_is(Space& space, const Stage& stage, const Point& point);

// Sets the point's multipliers to those that belong to w, after `look` has evaluated them.
void settle(const Space& space, const Stage& stage, double sigma, Point& point);

}  // namespace fdrsvm::client
