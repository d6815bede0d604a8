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
// For l2 the pair (s, w) lies in a second-order cone: cone.hpp. With groups of features there is
// one a_j per group, linf and l2 alike: it bounds every |w_p| of its group, and for l2 the pair
// (s, a) takes the place of (s, w).
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
    Transport transport;
    ConstVector curvature;  // of the distance to the centre; 0 where theta is the objective
    ConstMatrix metric;     // the same with all products, in place of `curvature`; no rows: none
    ConstVector centre;
    double level;
    bool levelled;  // a projection onto a level set; otherwise the model is minimised
    double price;   // what a unit of slope left over may cost: about ||w||_*
    double reach;
    double intercept_reach;

    size_t n_cuts() const { return constants.size(); }
    size_t n_clients() const { return alphas.size(); }
    size_t width() const { return centre.size(); }
    bool has_bounds() const {
        return has_sum() || (transport.norm == Norm::l2 && transport.is_grouped());
    }
    size_t n_bounds() const { return has_bounds() ? transport.n_groups(n_normed) : 0; }
    bool has_intercept() const { return width() > n_normed; }
    bool has_sum() const { return transport.norm == Norm::linf; }
    bool has_cone() const { return transport.norm == Norm::l2; }
    bool has_norm_rows() const { return has_bounds() || !has_cone(); }
    size_t cone_size() const { return 1 + (has_bounds() ? n_bounds() : n_normed); }
    bool has_metric() const { return metric.rows > 0; }
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
    double* bounds() { return all_.data() + bounds_; }  // a, one per group
    const double* bounds() const { return all_.data() + bounds_; }

  private:
    Buffer<> all_;
    size_t s_, theta_, bounds_;
};

// Where rows stand; places of rows that a problem does not have are not read.
struct RowPlaces {
    size_t up, down;   // +-w_p - a, or +-w_p - s
    size_t sum;        // linf: the sum of all a, less s
    size_t reach;      // s
    size_t intercept;  // b, then -b
    size_t level;
    size_t count;

    explicit RowPlaces(const Problem& problem) {
        const size_t pairs = problem.has_norm_rows() ? problem.n_normed : 0;
        up = problem.n_cuts();
        down = up + pairs;
        sum = down + pairs;
        reach = sum + (problem.has_sum() ? 1 : 0);
        intercept = reach + 1;
        level = intercept + (problem.has_intercept() ? 2 : 0);
        count = level + (problem.levelled ? 1 : 0);
    }
};

}  // namespace fdrsvm::master
