// The master problem in the unit its solvers work in, and the layout of its variables and rows.
//
// Variables (w, s, theta_g, and for the transport norm linf a_p); rows R v + offset + slack = 0:
//
//     v_k.w + sigma_k s - theta_g <= -A_k                 cuts and floors, sorted by client
//     w_p - a_p, -w_p - a_p, sum_p a_p - s <= 0           linf: sum |w| <= s
//     w_p - s, -w_p - s <= 0                              l1: max |w| <= s
//     s <= reach;  b, -b <= intercept_reach               keep an unbounded optimal set bounded
//     sum_g alpha_g theta_g <= level                      only for a projection
//
// For l2 the pair (s, w) lies in a second-order cone: cone.hpp.
#pragma once

#include "../core/choices.hpp"
#include "../core/norms.hpp"

namespace fdrsvm::master {

struct Problem {
    ConstMatrix
        cuts;  // (v_k, sigma_k), floors among them; zeros from the last column to the stride
    ConstVector constants;
    std::span<const size_t> starts;  // of each client's cuts, and their number at the end
    ConstVector alphas;              // all positive
    size_t n_normed;
    Norm norm;
    ConstVector curvature;  // of the distance to the centre; 0 where theta is the objective
    ConstVector centre;
    double level;
    bool levelled;  // a projection onto a level set; otherwise the model is minimised
    double price;   // what a unit of slope left over may cost: about ||w||_*
    double reach;
    double intercept_reach;

    size_t n_cuts() const { return constants.size(); }
    size_t n_clients() const { return alphas.size(); }
    size_t width() const { return centre.size(); }
    size_t n_bounds() const { return norm == Norm::linf ? n_normed : 0; }
    bool has_intercept() const { return width() > n_normed; }
    bool has_cone() const { return norm == Norm::l2; }
};

// One number per variable. The space between s and theta belongs to the padding of the cuts and
// stays zero.
class Variables {
  public:
    explicit Variables(const Problem& problem)
        : all_(problem.cuts.stride + problem.n_clients() + problem.n_bounds(), 0.0),
          s_(problem.width()),
          theta_(problem.cuts.stride),
          bounds_(theta_ + problem.n_clients()) {}

    Vector all() { return all_; }
    ConstVector all() const { return all_; }
    Vector padded_x() { return all().first(theta_); }  // (w, s) and zeros
    ConstVector padded_x() const { return all().first(theta_); }
    double* w() { return all_.data(); }
    const double* w() const { return all_.data(); }
    double& s() { return all_[s_]; }
    double s() const { return all_[s_]; }
    double* theta() { return all_.data() + theta_; }
    const double* theta() const { return all_.data() + theta_; }
    double* bounds() { return all_.data() + bounds_; }  // a_p, for linf
    const double* bounds() const { return all_.data() + bounds_; }

  private:
    Buffer<> all_;
    size_t s_, theta_, bounds_;
};

// Where rows stand; places of rows that a problem does not have are not read.
struct RowPlaces {
    size_t up, down;   // +-w_p - a_p, or +-w_p - s
    size_t sum;        // linf: sum_p a_p - s
    size_t reach;      // s
    size_t intercept;  // b, then -b
    size_t level;
    size_t count;

    explicit RowPlaces(const Problem& problem) {
        const size_t pairs = problem.has_cone() ? 0 : problem.n_normed;
        up = problem.n_cuts();
        down = up + pairs;
        sum = down + pairs;
        reach = sum + (problem.norm == Norm::linf ? 1 : 0);
        intercept = reach + 1;
        level = intercept + (problem.has_intercept() ? 2 : 0);
        count = level + (problem.levelled ? 1 : 0);
    }
};

}  // namespace fdrsvm::master
