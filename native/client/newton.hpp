// Newton's linear system on an augmented Lagrangian, [stage]: formed and factorised, or only
// applied.
//
// Matrix   sum over samples near a kink of weight_k r_k r_k', a diagonal, and the cone's derivative
// Method   Cholesky of size P + 1; with many features or few samples near a kink, conjugate
//          gradients preconditioned by Woodbury's formula over these samples' kernel matrix
// Cost     direct: band x P^2 + P^3; iterative: band^2 x P once, then band x P per step
#pragma once

#include "lagrangian.hpp"

namespace fdrsvm::client {

// Newton's matrix, as sums of rank-one terms; the last row and column stand for lam:
//
//     sum_k weight_k r_k r_k' + diag(diagonal) + cone_penalty sum_i low_weight_i low_i low_i'
//
// where r_k = (row of the band's sample k, -tilt_k), diagonal = own + cone_penalty cone, and all
// vectors are the space's.
class System {
  public:
    explicit System(Space& space) : space_(space), band_(space.band) {}

    // From the band that a look at the point has found, and the cone's projection.
    void build(const Stage& stage, const Point& point, const ConeProjection& projection);

    bool lam_is_curved() const { return lam_is_curved_; }

    // Sets the space's direction to -H^-1 gradient.
    void solve();

  private:
    Space& space_;
    Band& band_;
    bool lam_is_curved_ = false;
    double cone_penalty_ = 0.0;
    Buffer<> matrix_, packed_;

    void form();
    void pack(size_t first, size_t last);
    void add_sparse_rows(Matrix H) const;
    void subtract_low_row(Matrix H) const;
    void solve_direct(double* x);
    void solve_iteratively(double* x) const;
    void apply(const double* x, double* out) const;

    friend class Preconditioner;
};

}  // namespace fdrsvm::client
