/// \file
/// A wait's side of a Termination.
#pragma once

namespace watchdog {

/// Says that a wait goes on. Use from one thread at a time.
class TerminationWatch {
 public:
  TerminationWatch();
  ~TerminationWatch();
  TerminationWatch(const TerminationWatch&) = delete;
  TerminationWatch& operator=(const TerminationWatch&) = delete;

  /// Readable once a signal came; -1 where none is caught.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// The signal that came; 0: none did.
  [[nodiscard]] static int signal() noexcept;
  /// All was said: the signal takes its course with the last wait that says so. Usually does not
  /// return.
  void reraise();

 private:
  int fd_ = -1;
  bool counted_ = true;
};

}  // namespace watchdog
