#include "api/rest/model/ExecutionSummary.h"

#include "api/rest/model/Answers.h"
#include "api/rest/model/Examples.h"
#include "api/rest/model/Views.h"

namespace hearth::rest {

Json executionSummaryJson(const controller::ExecutionView& view, const std::string& origin) {
    Json out = executionJson(view, "", origin);
    for (const char* large : {"stdout", "stderr", "results"}) out.erase(large);
    out["outputBytes"] = view.kept_bytes;
    out["resultCount"] = view.result_count;
    return out;
}

Schema executionSummarySchema() {
    Json example = executionExample();
    for (const char* large : {"stdout", "stderr", "results"}) example.erase(large);
    example["outputBytes"] = 2;
    example["resultCount"] = 0;
    return Schema::object()
        .optional("stdout", Schema::string().describe("With `output=true`"))
        .optional("stderr", Schema::string().describe("With `output=true`"))
        .optional("results", Schema::array(resultSchema()).describe("With `output=true`"))
        .optional("outputBytes",
                  Schema::integer().describe("Kept output, over both channels; without `output`"))
        .optional("resultCount", Schema::integer().describe("Without `output`"))
        .mergeFields(executionSchema())
        .describe("An execution as lists show it")
        .example(example)
        .named("ExecutionSummary");
}

}  // namespace hearth::rest
