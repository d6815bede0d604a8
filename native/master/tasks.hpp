// The two problems that the server of a level bundle method solves in each round, graded.
//
// Solver (scale, interior_point) and grade (cut_model, bound) meet here and nowhere else, so that
// no solver grades itself. An answer of another solver to `scaled` is graded in the same way.
#pragma once

#include <optional>

#include "bound.hpp"
#include "interior_point.hpp"
#include "scale.hpp"

namespace fdrsvm::master {

// A solver's answer to a scaled problem.
struct Guess {
    ConstVector w;
    ConstVector cut_multipliers;
    double theta_price;
};

struct Effort {
    double tol;  // of the method's own estimate
    int max_iter;
};

// Minimise M: the best point and the best bound so far, from w = 0 and the floors on.
class Minimisation {
  public:
    // `radius` matters only if all floors are 0: the size of the models the bound is about; inf
    // stands for ten times ||w||_*.
    Minimisation(const CutModel& model, double radius);

    void solve(Effort effort);
    void offer(const Guess& guess);

    bool is_trivial() const { return !scaled_; }  // M >= 0 = M(0)
    double value_at_0() const { return value_at_0_; }
    ConstVector w() const { return w_; }
    double value() const { return value_; }
    const Bound& bound() const { return bound_; }
    int n_iter() const { return n_iter_; }
    const Scaled& scaled() const { return *scaled_; }

  private:
    const CutModel model_;
    const double radius_;
    Buffer<> w_;
    double value_, value_at_0_;
    Bound bound_;
    std::optional<Scaled> scaled_;
    int n_iter_ = 0;
};

// A point and numbers, graded as a projection.
struct GradedPoint {
    Buffer<> w;
    double value;     // M(w)
    Buffer<> shares;  // those that are not finite are 0
    double level_multiplier;
    double distance;  // 1/2 ||w - centre||^2
    double gap;       // by how much the distance may be too large
    Bound bound;
};

// The model nearest to a centre with M(w) <= level.
class Projection {
  public:
    Projection(const CutModel& model, LevelSet set);

    double value_at_centre() const { return value_at_centre_; }
    double value_at_0() const { return value_at_0_; }
    bool is_trivial() const { return !scaled_; }  // the centre is within the level
    int n_iter() const { return n_iter_; }
    const Scaled& scaled() const { return *scaled_; }

    GradedPoint solve(Effort effort);
    GradedPoint grade(const Guess& guess) const;
    GradedPoint grade_point(ConstVector w) const;  // without any shares

  private:
    GradedPoint grade(Buffer<> w, Buffer<> shares, double multiplier) const;

    const CutModel model_;
    const LevelSet set_;
    double value_at_centre_, value_at_0_;
    std::optional<Scaled> scaled_;
    int n_iter_ = 0;
};

}  // namespace fdrsvm::master
