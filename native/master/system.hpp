// Newton's matrix of the master problem: one Cholesky factor of size width + 1, [master].
//
// Matrix   diag(curvature) + R' diag(weights) R (+ W^-2) over (w, s, theta, a)
// Method   theta_g and a_j each appear in rows of their own only, so they are eliminated in closed
//          form; over (w, s) remain centred Gram matrices of the cuts and rank-one terms
// Cost     build: the cuts times (width + 1)^2 and a Cholesky factor; solve: (width + 1)^2 and two
//          passes over one mean per client
#pragma once

#include "cone.hpp"
#include "problem.hpp"

namespace fdrsvm::master {

// diag(curvature) + R' diag(weights) R (+ W^-2), with theta and a eliminated.
class System {
  public:
    explicit System(const Problem& problem);

    // At these weights of the rows (and the cone's scaling, for l2), and factorised.
    void build(ConstVector weights, const ConeScaling& scaling);

    // Sets f = (Newton's matrix)^-1 f over all variables.
    void solve(Variables& f);

  private:
    void set_client_mean(size_t g, ConstVector weights);
    void add_cuts(ConstVector weights);
    void add_level(double weight);
    void add_norm_rows(ConstVector weights, const ConeScaling& scaling);
    void set_pulls(ConstVector weights, const ConeScaling& scaling);
    void add_group(size_t j, ConstVector weights);
    void add_cone(const ConeScaling& scaling);
    void add_curvature();
    void add_to_x(double scale, ConstVector x, Variables& f) const;

    const Problem& problem_;
    const RowPlaces at_;
    size_t n_;          // of (w, s)
    Buffer<> storage_;  // of H_
    Matrix H_;          // upper half: the matrix, then its factor
    Buffer<> centred_;  // a block of rows sqrt(weight) (x_k - xbar_g)
    Buffer<> means_storage_;
    Matrix means_;             // xbar_g: the weighted mean of client g's cuts
    Buffer<> sums_;            // delta_g: their weights' sum
    Buffer<> pull_;            // u = sum_g alpha_g xbar_g
    double level_room_ = 0.0;  // tau_l
    Buffer<> tilt_;            // (e, 1)
    Buffer<> leans_;           // e before the pulls
    Buffer<> pulls_;           // of the sum row, or the cone, on each bound
    Buffer<> bound_sums_;      // D, one per bound
    double stiffness_ = 0.0;   // what the cone adds to each D
    double bound_room_ = 0.0;  // tau
    double onto_s_ = 0.0;      // of the bounds' own rows, through the cone
    Buffer<> means_times_x_;   // room for a solve
};

}  // namespace fdrsvm::master
