#pragma once

namespace hearth::rest {

// The examples of the OpenAPI document describe one workspace and its executions, so that ids,
// states and times of different operations fit together.

inline constexpr const char* kExampleWorkspace = "ws_4f0c2a9d3b1e4c7f8a6b5c4d3e2f1a0b";
inline constexpr const char* kExampleExecution = "ex_77d1c0a2b3e44f5f8a6b5c4d3e2f1a0b";
inline constexpr const char* kExampleContext = "cx_5f0c2c9a3d1e4b7f8a6b5c4d3e2f1a0b";
inline constexpr const char* kExampleSandbox = "sb_0a1b2c3d4e5f60718293a4b5c6d7e8f9";
inline constexpr const char* kExampleToken = "tk_12ab34cd56ef12ab34cd56ef12ab34cd";
inline constexpr const char* kExamplePool = "python";

}  // namespace hearth::rest
