#include "proxy/connection/request_body.h"

#include <array>

#include "ingest/unpacker.h"
#include "proxy/connection/json_members.h"
#include "proxy/connection/message_head.h"

namespace watchdog::monitor {
namespace {

/// The members to find.
enum Member : std::size_t {
  model,
  stream,
  return_progress,
  seed,
  max_tokens,
  max_completion_tokens,
  n_predict,
  top_k,
  temperature,
  top_p,
  min_p,
  members
};
constexpr std::array<std::string_view, members> member_names{
    "model",     "stream", "return_progress", "seed",  "max_tokens", "max_completion_tokens",
    "n_predict", "top_k",  "temperature",     "top_p", "min_p"};
using Members = std::array<std::string_view, members>;

TaskParameters parameters_in(const Members& found) {
  auto limit = count_in(found[n_predict]);
  if (!limit) limit = count_in(found[max_tokens]);
  if (!limit) limit = count_in(found[max_completion_tokens]);
  return {.seed = count_in(found[seed]),
          .max_tokens = limit,
          .top_k = count_in(found[top_k]),
          .temperature = number_in(found[temperature]),
          .top_p = number_in(found[top_p]),
          .min_p = number_in(found[min_p])};
}

constexpr std::string_view not_seen = ": its prompts and results are not seen";

/// Puts the content of a packed body into `body`.
void unpack(RequestBody& body, std::string_view coding, std::string_view bytes,
            std::size_t content_bytes_max) {
  body.unread = "the request is compressed by " + std::string(coding.substr(0, 32));
  const auto unpacker = unpacker_for(coding);
  if (!unpacker) {
    body.unread.append(", which is not read here").append(not_seen);
    return;
  }
  std::string content;
  const auto fed = unpacker->feed(bytes, content, content_bytes_max);
  const bool breaks_off = fed == Unpacker::Fed::good && !unpacker->is_whole() && !body.is_cut;
  if (fed == Unpacker::Fed::broken || breaks_off) {
    body.unread.append(", and cannot be unpacked").append(not_seen);
    return;
  }
  body.unread.clear();
  body.is_cut |= fed == Unpacker::Fed::full;
  body.content = std::make_shared<const std::string>(std::move(content));
}

}  // namespace

RequestBody read_request_body(const std::shared_ptr<const std::string>& bytes,
                              std::string_view coding, bool is_whole,
                              std::size_t content_bytes_max) {
  RequestBody body;
  body.is_cut = !is_whole;
  const bool is_plain = coding.empty() || is_header(coding, "identity");
  if (!is_plain) {
    unpack(body, coding, *bytes, content_bytes_max);
  } else if (bytes->size() <= content_bytes_max) {
    body.content = bytes;
  } else {
    body.content = std::make_shared<const std::string>(bytes->substr(0, content_bytes_max));
  }
  if (!body.content) return body;
  if (body.is_cut) body.unread = "the request is too large" + std::string(not_seen);
  // The members may be behind the part of a plain body that is kept.
  const std::string_view text = is_plain ? *bytes : *body.content;
  Members found;
  const bool is_object = body.is_cut ? find_first_members(text, member_names, found)
                                     : find_members(text, member_names, found);
  body.takes_members = is_object && is_plain && !body.is_cut;
  body.model = found[model];
  body.streams = flag_in(found[stream]);
  body.progress = found[return_progress];
  body.parameters = parameters_in(found);
  return body;
}

bool names_model(std::string_view beginning) noexcept {
  constexpr std::array<std::string_view, 1> names{"model"};
  std::array<std::string_view, 1> found;
  find_first_members(beginning, names, found);
  return !found[0].empty();
}

}  // namespace watchdog::monitor
