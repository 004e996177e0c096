#include "mcp/proxy/server_line.h"

#include <utility>

#include "mcp/rpc.h"

namespace watchdog::monitor::mcp {

void ServerLine::send(std::string message) {
  if (!is_closed_) return send_(std::move(message));
  held_bytes_ += message.size();
  held_.push_back(std::move(message));
}

void ServerLine::close() {
  own_.clear();
  held_.clear();
  held_bytes_ = 0;
  initialize_key_.clear();
  is_closed_ = true;
}

void ServerLine::open() {
  auto request = json::parse(initialize_, nullptr, false);
  if (!request.is_object()) return release();
  const auto id = next_id();
  request["id"] = id;
  send_(line_of(request));
  initialize_key_ = json(id).dump();
  expect(id);
}

void ServerLine::release() {
  if (!std::exchange(initialize_key_, {}).empty())
    send_(line_of({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}}));
  is_closed_ = false;
  held_bytes_ = 0;
  for (auto& message : std::exchange(held_, {})) send_(std::move(message));
}

bool ServerLine::is_own_answer(const std::string& key) {
  if (own_.erase(key) == 0) return false;
  if (key == initialize_key_) release();
  return true;
}

std::string ServerLine::next_id() {
  return prefix_ + "-" + std::to_string(++numbers_);
}

bool ServerLine::is_own_id(const std::string& key) const {
  return key.starts_with("\"" + prefix_ + "-");
}

void ServerLine::expect(const std::string& id) {
  own_.insert(json(id).dump());
}

}  // namespace watchdog::monitor::mcp
