#pragma once

#include <exception>
#include <string>

#include "controller/claims/Claimer.h"
#include "controller/contract/Principal.h"
#include "controller/store/History.h"

namespace hearth::controller {

/// Counts how claims end, and writes one log line about each. Thread-safe.
class ClaimAccount {
public:
    explicit ClaimAccount(const History& history) : history_(history) {}

    /// `request`: the span that the claim belongs to.
    void served(const Claimer::Claimed& claimed, const TraceContext& request) const;
    /// `pool` empty: none was found for it. `since`: when its request came.
    void unserved(const Principal& who, const std::string& pool, TimePoint since,
                  const std::exception& why) const;
    void cancelled(const Principal& who, const std::string& pool, TimePoint since) const;

private:
    const History history_;
};

}  // namespace hearth::controller
