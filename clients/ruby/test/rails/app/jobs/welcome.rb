# frozen_string_literal: true

# A job of ActiveJob.
class Welcome < ActiveJob::Base
  def perform(name)
    puts "Welcome #{name}"
  end
end
