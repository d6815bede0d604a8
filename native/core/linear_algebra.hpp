// Gram matrices and Cholesky factors of symmetric matrices, of which only the upper half is kept.
//
// Rows of a matrix begin `stride` numbers apart, a multiple of eight, with zeros beyond the last
// column. What lies below the diagonal is scratch. Every entry of a result is one plain sum over
// the rows in their order, so tiles may have any shape: the bits are the same.
#pragma once

#include "lanes.hpp"

namespace fdrsvm {

// out += sum over rows r of r r'. Both have the same columns, padded to a multiple of eight.
void add_gram(ConstMatrix rows, Matrix out);

// Sets A's upper half to the factor U with U' D^-1 U = A, D its diagonal, which is inverted; so
// there is no root to wait for. A pivot that has vanished in rounding drops its direction.
void factorise(Matrix A);

// Sets x = A^-1 x for `factorise`'s U; x is padded as U's rows are.
void solve_factorised(ConstMatrix U, double* x);

}  // namespace fdrsvm
