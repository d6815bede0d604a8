// The worst-case risk of one client, [risk]: what its kernels take and return. Nothing here depends
// on the instruction set, so that the bindings may include it.
//
// Flips  [flips]    without a support labels are flipped in order of gain; the rest moves features
// Moves  [box-dual] on a box the multiplier is searched at which the budget is spent, search.hpp
// Proof  [mixture]  the loss of the distribution itself, computed independently of the value
#pragma once

#include <cmath>

#include "../core/norms.hpp"

namespace fdrsvm::risk {

// All distributions whose transport from the data costs at most `epsilon` on average; a flipped
// label costs `kappa`, a move its length in the norm.
struct Ball {
    double epsilon = 0.0, kappa = 0.0;
    Transport transport;  // without groups on a box
};

struct Masses {
    ConstVector y, mass;
};

// Feature by feature.
struct Box {
    ConstVector low, high;
};

// A client's rows. `floor` is 0 for the hinge; -inf for the paper's linear loss.
struct Samples {
    ConstMatrix X;
    Masses masses;
    Box box;
    Ball ball;
    double floor = 0.0;
};

struct Model {
    ConstVector w;
    double intercept = 0.0;
};

// ------------------------------------------------------------------------------------- flips

// A threshold on gains: what gains more is flipped whole. `above` is its mass, `tied` the mass at
// the threshold.
struct Threshold {
    double at, above, tied;
};

// Smallest threshold, not below `floor`, whose mass above it is at most `budget`.
Threshold upper_quantile(ConstVector gains, ConstVector mass, double budget, double floor);

// Threshold and flipped mass. Above `floor` the tied samples are flipped by the common fraction
// that spends the budget exactly; at `floor` they are kept.
struct FlipRule {
    double threshold = 0.0, fraction = 0.0, flipped = 0.0;

    double share(double gain) const {
        return gain > threshold ? 1.0 : gain == threshold ? fraction : 0.0;
    }
};
FlipRule flip_rule(const Threshold& threshold, double budget, double floor);

// Each sample's losses under its own and the other label, and their slopes in their own margins.
struct LabelLosses {
    ConstVector kept, flipped, kept_slope, flipped_slope;
};

// `rest` is the budget that the flips leave for moving features. `proof` is the expected loss that
// this adversary really reaches: it never exceeds the value, and equals it up to rounding.
// `constant` and `slope_b` belong to the cut: what is left of it at w = 0, b = 0 (of the hinge
// alone), and its slope in b.
struct FlipsResult {
    double value = 0.0, proof = 0.0, multiplier = 0.0, rest = 0.0, constant = 0.0, slope_b = 0.0;
};

// Worst case for any loss; `least` is the smallest multiplier allowed. Fills shares and residuals:
// mass times label times slope.
FlipsResult worst_labels(const LabelLosses& losses, const Masses& samples, const Ball& ball,
                        double least, Vector shares, Vector residual);

// The same for max(floor, 1 - margin): the hinge at floor 0, the paper's linear loss at -inf.
// Residuals take the place of the margins; shares are filled unless empty.
FlipsResult worst_hinge_labels(Vector margins, const Masses& samples, const Ball& ball,
                               double least, double floor, Vector shares);

// The hinge's worst case when features may go anywhere. Fills the slope in w of the cut without its
// norm.
FlipsResult worst_without_box(const Samples& samples, const Model& model, Vector slope);

// --------------------------------------------------------------------------------------- moves

// What is done to each sample at the lower (0) and the upper (1) end of the bracket; `share` of its
// mass goes the lower way. A label is 0 where the sample is left alone with its loss at the floor.
struct WorstMoves {
    Vector shares;
    Matrix labels, steps;  // of two rows
};

// Value (dual), proof (the loss of the very moves found), the multiplier, and the mass of what the
// moves leave or bring inside the margin: the constant of the cut, [mass].
struct BoxResult {
    double value = 0.0, proof = 0.0, multiplier = 0.0, slope_b = 0.0, mass = 0.0;
};

// Solves [box-dual]; fills the subgradient and, if not null, the moves.
BoxResult worst_in_box(const Samples& samples, const Model& model, Vector subgradient,
                      WorstMoves* moves);

// The points that one end's labels (0: left alone) and steps stand for.
void displace(const Samples& samples, const Model& model, ConstVector labels, ConstVector steps,
              Matrix points);

// The hinge over a worst case's atoms: their mass inside the margin, and the slope of the mean.
struct MeanHinge {
    double mass = 0.0, slope_b = 0.0;
};
MeanHinge hinge_of_atoms(const Samples& samples, const Model& model, const WorstMoves& moves,
                         Vector slope);

// First row with a value outside the box, or the number of rows.
size_t first_outside(ConstMatrix X, const Box& box);

// ---------------------------------------------------------------------------------------- cuts

// Masses sum to 1, so a smaller slope of the intercept is rounding; a server that followed it would
// end at intercepts of 1e15.
inline double without_rounding(double slope_b) {
    return std::fabs(slope_b) > 1e-15 ? slope_b : 0.0;
}

}  // namespace fdrsvm::risk
