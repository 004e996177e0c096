#include "cli/token_watch.h"

#include <utility>

namespace watchdog::monitor {

void TokenWatch::look() {
  // Editors take a file away for a moment when they save it: the second look counts.
  std::error_code ignored;
  const bool missing = !std::filesystem::exists(options_.file, ignored);
  if (missing && !std::exchange(missing_, true)) return;
  missing_ = missing;
  auto tokens = options_.read();
  if (!tokens) {
    const auto& trouble = tokens.error().message;
    if (trouble != trouble_) options_.log(trouble + "; the earlier tokens stay in force");
    trouble_ = trouble;
    return;
  }
  trouble_.clear();
  if (*tokens == options_.known) return;
  options_.known = *tokens;
  std::string names;
  for (const auto& token : *tokens) names += (names.empty() ? "" : ", ") + token.name;
  options_.log("the tokens in " + options_.file.string() + " have changed; those of " + names +
               " are in force");
  options_.changed(std::move(*tokens));
}

}  // namespace watchdog::monitor
