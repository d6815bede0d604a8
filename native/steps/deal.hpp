// Whose turn it is when rows are dealt to clients by shares.
#pragma once

#include <cstdint>

#include "../core/views.hpp"

namespace fdrsvm::steps {

// Sets a client for each row, such that after any k rows each has its share of k to within one.
// Tijdeman's rule for the chairman assignment problem: of the clients that are owed enough, the one
// whose next row is due first. Cost: rows x clients.
void deal(ConstVector shares, std::span<std::int64_t> turns);

}  // namespace fdrsvm::steps
