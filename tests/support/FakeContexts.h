#pragma once

#include <string>
#include <vector>

#include "base/Error.h"
#include "controller/Services.h"
#include "tests/support/FakeIds.h"

namespace hearth::test {

/// One context, kContext, in kWorkspace.
class FakeContexts final : public controller::Contexts {
public:
    controller::ContextView create(const Principal& who, const std::string& given_workspace,
                                   const controller::ContextRequest& given) override {
        workspace = given_workspace;
        request = given;
        controller::ContextView out = get(who, kContext);
        out.name = given.name;
        out.replayed = given.name == "known";
        return out;
    }
    std::vector<controller::ContextView> list(const Principal& who, const std::string&) override {
        return {get(who, kContext)};
    }
    controller::ContextView get(const Principal&, const std::string& id) override {
        if (id != kContext) throw Error(ErrorCode::NotFound, "there is no such context");
        controller::ContextView out;
        out.id = kContext;
        out.workspace_id = kWorkspace;
        out.tenant = "default";
        out.language = "python";
        out.created_at = kTime;
        return out;
    }
    void interrupt(const Principal&, const std::string&) override {}
    controller::ContextView restart(const Principal& who, const std::string& id) override {
        return get(who, id);
    }
    void remove(const Principal&, const std::string&) override {}

    std::string workspace;
    controller::ContextRequest request;
};

}  // namespace hearth::test
