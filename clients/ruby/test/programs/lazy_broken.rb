# frozen_string_literal: true

raise LoadError, 'it needs something that is not here'
