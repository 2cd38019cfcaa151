#pragma once

#include "api/rest/RestHandler.h"
#include "tests/support/FakeHttp.h"
#include "tests/support/FakeServices.h"

namespace hearth::test {

/// The whole surface over fakes: one workspace, one execution, and a clock that the test moves.
struct House : FakeServices {
    House() : FakeServices(Time::Manual) {
        workspaces.keepOne();
        executions.keepOne();
    }

    auth::Authenticator authenticator{tokens};
    auth::WorkerShares shares{8};
    auth::RateLimits limits{0, 0, clock};
    rest::RestHandler rest{services, authenticator, shares, limits};
};

}  // namespace hearth::test
