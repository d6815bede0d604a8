// Lower bounds from any numbers: nothing here trusts a solver, or shares code with one.
//
// Cuts     F(u) >= Abar + r.u + S ||u||_*  for shares pi >= 0 of each client's cuts that sum to 1:
//          Abar = sum alpha pi A, r = sum alpha pi v, S = sum alpha pi sigma, floors included
// Bound    Abar, if ||r|| <= S (transport norm, features) and r_b = 0 (intercept), [model-bound]
// Repair   clip, scale, give the missing share to the floor; scale down the heavier sign of v_b;
//          mix with the floors alone until ||r|| <= S
// Cost     two passes over the slopes
#pragma once

#include "cut_model.hpp"

namespace fdrsvm::master {

// F(u) >= value for every model u with ||u||_* <= radius.
struct Bound {
    double value;
    double radius;
    Buffer<> shares;           // repaired; what a client's shares lack to 1 goes to its floor
    Buffer<> slope_by_client;  // sum_k pi_k v_k, one row per client
};

// What a combined cut proves that has this constant and ||r|| - S = excess, mixed with floors of
// total weight `floor`; `share` is the share of the cut in the mixture.
struct Mixture {
    double value;
    double radius;
    double share;
};

Mixture mixture_bound(double constant, double excess, double floor, double radius);

// The bound that `shares` prove once they are made feasible; any numbers will do, even nan.
// `radius` matters only if all floors are 0: it is the size of the models the bound is about.
Bound model_bound(const CutModel& model, ConstVector shares, double radius);

// Sets row g of out to sum_k pi_k v_k over client g's cuts.
void slope_by_client(const CutModel& model, ConstVector shares, Matrix out);

// A lower bound on 1/2 ||u - centre||^2 over the level set: the minimum over all u of that plus
// `multiplier` (not negative) times the excess over the level of the cut that `shares`, made
// feasible, combine. Numbers that prove nothing give -inf. In a metric the same holds for its
// distance, and `near`, any model, says where the minimum is about, [metric-bound].
double distance_bound(const CutModel& model, const LevelSet& set, ConstVector shares,
                      double multiplier, ConstVector near = {});

}  // namespace fdrsvm::master
