// The master problem in the unit its solvers work in, and back, [master].
//
// Features are divided by their largest slope, an intercept by its own, and values by M(0), so that
// slopes and values are about 1 and the tolerances and starting points of the solver mean the same
// for every problem. All features share one scale, because the norm adds them up.
#pragma once

#include "cut_model.hpp"
#include "problem.hpp"

namespace fdrsvm::master {

class Scaled {
  public:
    const Problem& problem() const { return problem_; }

    // Sets w = w' * units.
    void bring_back(ConstVector scaled_w, Vector w) const;
    // Shares of the model's cuts from the rows' multipliers, which for client g sum to
    // price * alpha_g; 0 for a cut of a client without weight.
    Buffer<> shares(ConstVector multipliers, double price) const;
    // The level's multiplier, brought back.
    double level_multiplier(double scaled) const;

  private:
    struct Aim;
    Scaled(const CutModel& model, const Aim& aim);
    void place_rows(const CutModel& model);
    void fill_cuts(const CutModel& model, const Aim& aim);
    void fill_problem(const CutModel& model, const Aim& aim);
    void fill_metric(const Aim& aim);
    friend Scaled scale_minimisation(const CutModel&, double, double);
    friend Scaled scale_projection(const CutModel&, const LevelSet&);

    double feature_scale_, intercept_scale_;
    Buffer<> units_;
    double multiplier_unit_;
    Buffer<size_t> rows_;  // where each of the model's cuts stands, or kNowhere
    Buffer<size_t> starts_;
    Buffer<> cuts_, constants_, alphas_, curvature_, metric_, centre_;
    Problem problem_;
};

// Minimise M(w), with ||w||_* up to `radius` (or where no minimiser can be); value_unit is M(0).
Scaled scale_minimisation(const CutModel& model, double value_unit, double radius);

// The point of the set nearest to its centre, where level < M(centre).
Scaled scale_projection(const CutModel& model, const LevelSet& set);

}  // namespace fdrsvm::master
