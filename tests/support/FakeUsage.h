#pragma once

#include <vector>

#include "controller/contract/Usage.h"

namespace hearth::test {

/// Remembers the last question.
class FakeUsage final : public controller::UsageReports {
public:
    std::vector<controller::UsageRow> report(const controller::Principal&,
                                             const controller::UsageQuery& query) override {
        asked = query;
        return rows;
    }

    controller::UsageQuery asked;
    std::vector<controller::UsageRow> rows;
};

}  // namespace hearth::test
