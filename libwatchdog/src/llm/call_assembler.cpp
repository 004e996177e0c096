#include "llm/call_assembler.h"

#include <algorithm>

#include "facts/digest.h"
#include "text/json_writer.h"

namespace watchdog {

std::size_t CallAssembler::add(std::optional<std::int64_t> index, std::string_view id,
                               std::string_view name, std::string_view arguments) {
  std::size_t cost = arguments.size();
  auto at = calls_.size();
  if (const auto known = known_place(index, id, name)) {
    at = *known;
  } else {
    calls_.emplace_back();
    places_.push_back({.index = index});
    if (index) newest_by_index_[*index] = at;
    cost += sizeof(ToolRequest) + sizeof(CallPlace);
  }
  auto& call = calls_[at];
  if (call.id.empty() && !id.empty()) {
    call.id = id;
    cost += 2 * id.size();
    by_id_.insert_or_assign(call.id, at);
  }
  if (call.name.empty()) {
    call.name = name;
    cost += name.size();
  }
  places_[at].arguments.grow(arguments);
  append(at, arguments);
  return cost;
}

/// Long arguments are digested block by block, so fragments of any size give the same.
void CallAssembler::append(std::size_t at, std::string_view piece) {
  auto& kept = calls_[at].arguments;
  auto& place = places_[at];
  while (piece.size() > arguments_bytes_max_ - kept.size()) {
    const auto room = arguments_bytes_max_ - kept.size();
    kept.append(piece.substr(0, room));
    piece.remove_prefix(room);
    place.folded = combined(place.folded, digest_of(kept));
    place.bytes += kept.size();
    kept.clear();
  }
  kept.append(piece);
}

std::vector<ToolRequest> CallAssembler::release() {
  for (std::size_t at = 0; at < calls_.size(); ++at) {
    const auto& place = places_[at];
    if (place.bytes == 0) continue;
    auto& kept = calls_[at].arguments;
    JsonWriter out;
    out.open_object()
        .field("digest", hexadecimal(combined(place.folded, digest_of(kept))))
        .field("bytes", place.bytes + kept.size())
        .close_object();
    kept = out.finish();
  }
  return std::move(calls_);
}

/// Returns the place of a known call. An index decides, unless it comes with another call's id or
/// name; without an index the id decides, and without both a name begins a new call.
std::optional<std::size_t> CallAssembler::known_place(std::optional<std::int64_t> index,
                                                      std::string_view id,
                                                      std::string_view name) const {
  const auto with_id = by_id_.find(id);
  if (!index) {
    if (with_id != by_id_.end()) return with_id->second;
    if (id.empty() && name.empty() && !calls_.empty()) return calls_.size() - 1;
    return std::nullopt;
  }
  const auto newest = newest_by_index_.find(*index);
  if (newest == newest_by_index_.end()) return std::nullopt;
  const std::size_t at = newest->second;
  const ToolRequest& known = calls_[at];
  if (!id.empty() && !known.id.empty()) {
    if (id == known.id) return at;
    if (with_id != by_id_.end() && places_[with_id->second].index == index) return with_id->second;
    return std::nullopt;
  }
  const bool another = !name.empty() && !known.name.empty() && places_[at].arguments.is_whole();
  return another ? std::nullopt : std::optional(at);
}

void CallAssembler::ObjectText::grow(std::string_view piece) {
  for (const char c : piece) grow(c);
}

void CallAssembler::ObjectText::grow(char c) {
  switch (state_) {
    case State::empty:
      state_ = c == '{' ? State::begun : State::other;
      depth_ = 1;
      return;
    case State::begun:
      if (c == '"') state_ = State::in_string;
      if (c == '{' || c == '[') ++depth_;
      if ((c == '}' || c == ']') && --depth_ == 0) state_ = State::whole;
      return;
    case State::in_string:
      if (c == '"') state_ = State::begun;
      if (c == '\\') state_ = State::escaped;
      return;
    case State::escaped:
      state_ = State::in_string;
      return;
    case State::whole:
      if (c != ' ' && c != '\n' && c != '\r' && c != '\t') state_ = State::other;
      return;
    case State::other:
      return;
  }
}

}  // namespace watchdog
