module Zoo
  class Lion
    def roar
      1
    end
  end
end
