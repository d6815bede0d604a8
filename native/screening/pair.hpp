// [pair]: which risks are consistent with a cut.
//
// Given    a cut (A, v, v_b, sigma) of one client and a model (w, b)
// Span     all rows within the limits that yield the cut have a risk in [lowest, highest] there
// Method   the least hinge of rows with the cut's mean, from Jensen per label; the largest from the
//          chord of the hinge over the scores that rows can have
// Cost     one pass over the features; `rough_span` is O(1) if A + v.w + v_b b is known
#pragma once

#include "../core/norms.hpp"

namespace fdrsvm::screening {

// What answers are checked against during a whole run; infinite where nothing is agreed.
struct Bounds {
    double lowest_constant;
    double highest_constant;  // the loss of a margin of 0
    ConstVector slopes;       // L R_j, and L for an intercept; empty if nothing is agreed
    bool has_slopes;          // whether these are finite
    bool is_hinge;
    bool touches;    // whether the first cuts must equal the risks ...
    double blurred;  // ... or lie at most this share of 1 + S below
    bool is_single;  // whether answers are of one client each, not sums
    double grid;     // risks are rounded up to it, constants down
};

// What the rules know of one client's radius.
struct Radius {
    double floor = 0.0;  // epsilon L, or 0 on a box
    double flips = 0.0;  // epsilon / kappa: the mass of labels that it can flip
};

// Of all clients, and how a model's size is measured.
struct Radii {
    ConstVector floors;
    ConstVector flips;
    size_t n_features;  // these entries of a model are in the norm
    Transport transport;

    Radius operator[](size_t client) const { return {floors[client], flips[client]}; }
};

// A model, and what the limits alone say of it.
struct Place {
    ConstVector point;
    size_t n_features;  // of its entries; one more is an intercept
    double size;        // ||w||_*
    double score;       // L (sum_j R_j |w_j| + |b|), or 0 if nothing is agreed
    double least;       // no row has a smaller loss
    double steepness;   // largest slope over constant of a tangent made here
};

// Models (rows). `others` has their least losses and steepnesses; for the hinge these follow from
// the bounds, and it has no columns.
struct Points {
    ConstMatrix models;
    ConstMatrix others;
};

Place place_of(const Points& points, size_t i, const Bounds& bounds, const Radii& radii);

struct Cut {
    double constant;
    ConstVector slope;
    double norm_weight;
};

// Cuts one below the other.
struct Cuts {
    ConstVector constants;
    ConstMatrix slopes;
    ConstVector norm_weights;

    Cut operator[](size_t k) const { return {constants[k], slopes[k], norm_weights[k]}; }
};

// A cut at a place, and the size of what it is summed up from.
struct Value {
    double value;
    double scale;
};

Value value_at(const Cut& cut, const Place& place);

// Every risk at a place, if a cut is true; `slack` is how far rounding may lead.
struct Span {
    double lowest;
    double highest;
    double slack;
};

Span span_at(const Cut& cut, const Place& place, const Radius& radius, const Bounds& bounds);

// The same, but with both labels taken together and without slack, from A + v.w + v_b b: this makes
// it cheap to check many cuts at once. It is the wider of the two spans, but for the slack.
Span rough_span(const Cut& cut, double linear, const Place& place, const Radius& radius,
                const Bounds& bounds);

}  // namespace fdrsvm::screening
