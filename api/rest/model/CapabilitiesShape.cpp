#include "api/rest/model/Answers.h"

namespace hearth::rest {
namespace {

Schema words() {
    return Schema::array(Schema::string());
}

Schema isolationSchema() {
    return Schema::object()
        .required("userNamespaces", Schema::boolean())
        .required("seccomp", Schema::boolean())
        .required("cgroup", Schema::string())
        .required("network", Schema::string())
        .required("knownHoles", words().describe("Known holes of this version of the runtime"))
        .open()
        .describe("The isolation that is really in force")
        .named("Isolation");
}

Schema imageSchema() {
    return Schema::object()
        .required("name", Schema::string())
        .optional("digest", Schema::string())
        .optional("reference", Schema::string().describe("Where it came from; may be empty"))
        .required("languages", words())
        .open()
        .named("ImageFacts");
}

}  // namespace

Schema capabilitiesSchema() {
    return Schema::object()
        .required("version", Schema::string())
        .required("runtime", Schema::string())
        .required("runtimeVersion", Schema::string())
        .required("isolation", isolationSchema())
        .required("images", Schema::array(imageSchema()))
        .required("onDemand", Schema::object()
                                  .required("allow", words())
                                  .required("maxSandboxes", Schema::integer())
                                  .open()
                                  .describe("Images that a claim may use without a pool"))
        .required("networks", words())
        .required("mirrors", words().describe("The package indexes that are mirrored"))
        .required("gpus", Schema::array(schemaOf<controller::GpuProduct>())
                              .describe("The GPUs that pools may have"))
        .required("protocols", Schema::object()
                                   .required("rest", Schema::string())
                                   .required("mcp", words().describe("Revisions"))
                                   .open())
        .open()
        .example(
            parseJson(R"({"version":"0.1.0","runtime":"oci","runtimeVersion":"runc version 1.1.5",
        "isolation":{"userNamespaces":true,"seccomp":true,"cgroup":"v2","network":"None",
                     "knownHoles":[]},
        "images":[{"name":"python","digest":"sha256:0000","reference":"",
                   "languages":["bash","javascript","python","sh"]}],
        "onDemand":{"allow":[],"maxSandboxes":20},"networks":["None","Mirror","Egress"],
        "mirrors":["pypi"],"gpus":[],"protocols":{"rest":"v1","mcp":["2025-11-25"]}})"))
        .named("Capabilities");
}

}  // namespace hearth::rest
