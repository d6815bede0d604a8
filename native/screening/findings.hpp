// Which rule an answer breaks, and how much deviation is put down to rounding, [slack].
#pragma once

namespace fdrsvm::screening {

// In the order in which they are checked.
enum class Rule : int {
    kept,
    norm_weight,
    constant_high,
    constant_low,
    slope,
    risk_low,
    risk_high,
    above,  // a cut, or rows that give it, above a risk of the same answer
    over,   // a risk above that of any rows that give a cut of the same answer
    apart,  // a cut that does not touch the risk where it was made
    vector,
    intercept,
    squares,
    contradicting  // `above` or `over`, but cut and risk are from different rounds
};

// The first rule that is broken, by which number, and what it is held against.
struct Finding {
    Rule rule = Rule::kept;
    double value = 0.0;
    double limit = 0.0;

    bool is_kept() const { return rule == Rule::kept; }
};

// Two ways of computing one number agree to kRounding of the numbers in the answer. What cancels on
// the way, in sums over rows of size up to R, adds at most kTiny of the scores these rows can have:
// a larger allowance would let a client lift its cuts by more than a closed gap. See [slack].
inline constexpr double kRounding = 1e-9, kTiny = 1e-12;

// As in Python, the first of the two unless the second is larger (smaller). std::max and std::min
// do not promise this order for nans, and the reference in Python must give the same findings.
inline double larger(double a, double b) { return b > a ? b : a; }
inline double smaller(double a, double b) { return b < a ? b : a; }

}  // namespace fdrsvm::screening
