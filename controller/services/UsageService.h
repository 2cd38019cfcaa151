#pragma once

#include "base/Clock.h"
#include "controller/contract/Usage.h"
#include "controller/usage/UsageBook.h"

namespace hearth::controller {

/// Reports usage: all of it to operators, their own tenant's to users. Thread-safe.
class UsageService final : public UsageReports {
public:
    UsageService(UsageBook& book, const Clock& clock) : book_(book), clock_(clock) {}

    std::vector<UsageRow> report(const Principal& who, const UsageQuery& query) override {
        return book_.read(who.atLeast(Role::Operator) ? "" : who.tenant, query, clock_.wall());
    }

private:
    UsageBook& book_;
    const Clock& clock_;
};

}  // namespace hearth::controller
