// Products with the matrix R of all rows of the master problem.
#pragma once

#include "problem.hpp"

namespace fdrsvm::master {

// Sets out += sign * rows' @ factors; out has one entry per column of the stride. Each entry is one
// sum over the rows in their order.
void add_transposed_product(ConstMatrix rows, const double* factors, double sign, double* out);

// Sets out = rows @ x, x and rows padded with zeros up to the stride.
void padded_product(ConstMatrix rows, ConstVector x, Vector out);

// Sets out = R v.
void times_rows(const Problem& problem, const Variables& v, Vector out);

// Sets out += sign * R' z. The price of theta is the level's multiplier, or what the objective
// pays.
void add_transposed_rows(const Problem& problem, ConstVector z, double theta_price, double sign,
                         Variables& out);

// Sets out += sign * (curvature of the distance) x, over w.
void add_curved(const Problem& problem, const double* x, double sign, double* out);

// What is added to R v.
Buffer<> row_offsets(const Problem& problem);

}  // namespace fdrsvm::master
