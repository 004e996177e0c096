#include "wrapper/recognition.h"

#include <re2/re2.h>

#include <algorithm>
#include <utility>

#include "codec/json.h"

namespace watchdog::monitor {

struct Recognition::Expressions {
  std::vector<std::unique_ptr<const re2::RE2>> all;
};

Result<Recognition> Recognition::of(const std::vector<std::string>& expressions, bool json_events) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(1 << 20);  // also bounds what a byte of output may cost
  options.set_never_capture(true);
  auto compiled = std::make_shared<Expressions>();
  for (const auto& text : expressions) {
    auto expression = std::make_unique<re2::RE2>(text, options);
    if (!expression->ok())
      return Error{ErrorCode::invalid,
                   text + " is not a regular expression: " + expression->error()};
    compiled->all.push_back(std::move(expression));
  }
  Recognition recognition;
  recognition.expressions_ = std::move(compiled);
  recognition.json_events_ = json_events;
  return recognition;
}

bool Recognition::is_idle() const {
  return !json_events_ && expressions_->all.empty();
}

std::optional<Report> Recognition::event_in(std::string_view line) const {
  if (!json_events_ || !line.starts_with('{')) return std::nullopt;
  auto report = report_from_json(line);
  if (!report || !*report || (*report)->kind == ReportKind::start) return std::nullopt;
  return std::move(*report);
}

bool Recognition::finds(std::string_view line) const {
  return std::ranges::any_of(expressions_->all, [&](const auto& expression) {
    return re2::RE2::PartialMatch({line.data(), line.size()}, *expression);
  });
}

}  // namespace watchdog::monitor
